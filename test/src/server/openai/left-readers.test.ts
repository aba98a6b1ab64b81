import { describe, expect, it, vi } from 'vitest';
import type { TokenRequest } from '../../../../callbacks/token-request.js';
import { PieceQueue } from '../../../../host/token-stream.js';
import type { FakeEngine } from '../../support/fake-engine.js';
import { toyCodec } from '../../support/toy-codec.js';
import { toyServer } from '../../support/toy-server.js';

const N = 8;
const TOKENS = 600;

/** A server whose engine has given each of n sequences its tokens at once, before any could be read. */
function finishedServer() {
  const bytes = vi.fn(toyCodec.tokenBytes);
  const toy = toyServer(() => [], {
    model: { maxSeqLen: 4096, fitsTogether: () => true, codec: { ...toyCodec, tokenBytes: bytes } },
  });
  const { metrics } = toy;
  const queues: PieceQueue[] = [];
  const engine = toy.engine as FakeEngine & { submitSeveral: (request: TokenRequest) => PieceQueue[] };
  engine.submitSeveral = (request) => {
    for (let index = 0; index < request.numSequences!; index++) {
      const queue = new PieceQueue(
        BigInt(index),
        request,
        () => {},
        (_, call) => call(),
      );
      queues.push(queue);
    }
    return queues;
  };
  const generate = () => {
    for (let step = 0; step < TOKENS; step++) {
      for (const queue of queues) {
        queue.pushTokens({
          tokens: Int32Array.of(97),
          logProbs: Float32Array.of(-1),
          topTokens: Int32Array.from({ length: 20 }, (_, i) => 97 + i),
          topLogProbs: new Float32Array(20),
          finishReason: null,
        });
      }
    }
    for (const queue of queues) queue.finish('length');
  };
  return { toy, metrics, bytes, queues, generate };
}

const ASK = { model: 'toy', prompt: 'x', logprobs: 20 };

describe('a client that asked for many log-probs and reads nothing', () => {
  it('is told nothing more once it has left, and its tokens are counted', async () => {
    const { toy, metrics, bytes, queues, generate } = finishedServer();
    const body = { ...ASK, n: N, max_tokens: TOKENS, stream: true };
    const answer = toy.post('/v1/completions', body);
    await expect.poll(() => queues.length).toBe(N);
    generate();
    const response = await answer;
    await response.body!.cancel();
    const written = bytes.mock.calls.length;
    await expect.poll(async () => await metrics.text()).toContain('finished_reason="abort"');
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(bytes.mock.calls.length).toBe(written);
    expect(await metrics.text()).toMatch(
      new RegExp(`^vllm:generation_tokens_total\\{[^}]*\\} ${N * TOKENS}$`, 'm'),
    );
  });
});
