import { describe, expect, it } from 'vitest';
import type { TokenPiece, TokenRequest } from '../../callbacks/token-request.js';
import type { NamedTensor } from '../../callbacks/types.js';
import { SequenceQueues } from '../../host/sequence-queues.js';
import { PieceQueue } from '../../host/token-stream.js';

const REQUEST: TokenRequest = { promptTokens: [1, 2, 3, 4], maxNewTokens: 8, returnContextProgress: true };

const progress = (done: number): NamedTensor[] => [
  { name: 'context_progress', shape: [1, 3], data: Int32Array.of(done, 1, 10 * done) },
];
const first = (token: number): NamedTensor[] => [
  { name: 'output_ids', shape: [1, 1, 1], data: Int32Array.of(token) },
  { name: 'sequence_length', shape: [1, 1], data: Int32Array.of(5) },
  { name: 'context_logits', shape: [1, 1, 1], data: new Float32Array(1) },
  { name: 'finish_reasons', shape: [1, 1], data: Int32Array.of(0) },
  { name: 'cached_tokens', shape: [1, 1], data: Int32Array.of(1) },
];
const piece = (token: number): TokenPiece => ({ tokens: Int32Array.of(token), finishReason: null });

/** Queues of a request, and all pieces that each of them has handed out, without the empty fields. */
function queuesOf(count: number) {
  const heard: object[][] = Array.from({ length: count }, () => []);
  const queues = heard.map(() => {
    return new PieceQueue(
      1n,
      REQUEST,
      () => {},
      (__, call) => call(),
    );
  });
  for (const [i, queue] of queues.entries()) {
    queue.listen({
      onPiece: ({ tokens, finishReason: _, ...rest }) => heard[i]!.push({ tokens: [...tokens], ...rest }),
      onError: () => {},
    });
  }
  return { queues, heard, all: new SequenceQueues(queues, REQUEST) };
}

describe('the progress of a prompt', () => {
  it('is a piece without tokens at once, of the first sequence alone', () => {
    const { all, heard } = queuesOf(2);
    all.push(progress(2), false);
    all.push(progress(4), false);
    expect(heard).toEqual([
      [
        { tokens: [], contextProgress: { done: 2, cached: 1, ms: 20 } },
        { tokens: [], contextProgress: { done: 4, cached: 1, ms: 40 } },
      ],
      [],
    ]);
    expect(all.usedTokens).toBe(0);
  });

  it('is the newest alone where the consumer is slow, with the tokens that have come', () => {
    const { queues, all, heard } = queuesOf(1);
    queues[0]!.pause();
    all.push(progress(2), false);
    all.push(progress(4), false);
    queues[0]!.resume();
    expect(heard[0]).toEqual([{ tokens: [], contextProgress: { done: 4, cached: 1, ms: 40 } }]);
    queues[0]!.pause();
    all.push(progress(4), false);
    all.push(first(7), false);
    all.pushTokens(0, piece(8));
    queues[0]!.resume();
    all.pushTokens(0, piece(9));
    expect(heard[0]!.slice(1)).toEqual([
      { tokens: [7, 8], contextProgress: { done: 4, cached: 1, ms: 40 }, cachedTokens: 1 },
      { tokens: [9] },
    ]);
  });

  it('stays in front of tokens that come while it waits', () => {
    const { queues, all, heard } = queuesOf(1);
    queues[0]!.pause();
    all.push(progress(4), false);
    queues[0]!.resume();
    all.push(first(7), false);
    expect(heard[0]!.map((one) => Object.keys(one))).toEqual([
      ['tokens', 'contextProgress'],
      ['tokens', 'cachedTokens'],
    ]);
  });

  it('is dropped where the stream has ended or its consumer has left', () => {
    const { queues, all, heard } = queuesOf(1);
    queues[0]!.leave();
    all.push(progress(2), false);
    const ended = queuesOf(1);
    ended.all.finish('cancelled');
    ended.all.push(progress(2), false);
    expect([heard[0], ended.heard[0]!.length]).toEqual([[], 1]);
  });
});
