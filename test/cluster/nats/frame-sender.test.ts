import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TokenPiece } from '../../../callbacks/token-request.js';
import { FrameSender, type Lane } from '../../../cluster/nats/frame-sender.js';
import type { FramesMessage } from '../../../cluster/nats/messages.js';
import { readRuns } from '../../../cluster/nats/token-runs.js';

const lane = (number: number | undefined, sequence = 0, gateway = 'g'): Lane => ({
  item: {
    gateway,
    id: `${gateway}-${number ?? 'x'}`,
    attempt: 1,
    ...(number === undefined ? {} : { number }),
  },
  ...{ sequence, next: 0, isEnded: false, framedIn: 0 },
});
const tokens = (...list: number[]): TokenPiece => ({ tokens: Int32Array.from(list), finishReason: null });

function setUp(maxBytes = 4096) {
  const sent: [gateway: string, message: FramesMessage][] = [];
  const unsent: string[] = [];
  let isBroken = false;
  const port = {
    maxBytes,
    send: (gateway: string, message: FramesMessage) => {
      if (isBroken) throw new Error('closed');
      sent.push([gateway, message]);
    },
  };
  const sender = new FrameSender('w', port, (id) => unsent.push(id));
  return { sender, sent, unsent, breakPort: () => (isBroken = true) };
}

/** Pieces in the order in which a gateway takes them, as [sequence, index, number of tokens]. */
function taken(sent: readonly [string, FramesMessage][]): [number, number, number][] {
  return sent.flatMap(([, { runs, frames }]) => [
    ...Array.from(
      readRuns(runs ?? new Int32Array(0)),
      ({ sequence, index, tokens }): [number, number, number] => [sequence, index, tokens.length],
    ),
    ...frames.map(({ sequence, index, piece }): [number, number, number] => [
      sequence,
      index,
      piece.tokens.length,
    ]),
  ]);
}

describe('frames of a worker', () => {
  it('go as one message for each gateway and turn, tokens alone as numbers', async () => {
    const { sender, sent } = setUp();
    sender.send(lane(1), tokens(5));
    sender.send(lane(2), { ...tokens(6), logProbs: Float32Array.of(-1) });
    sender.send(lane(3, 0, 'h'), tokens(7, 8));
    sender.send(lane(4), { ...tokens(9), finishReason: 'length' });
    await Promise.resolve();
    expect(sent.map(([gateway]) => gateway)).toEqual(['g', 'h']);
    const [[, first], [, second]] = sent as [[string, FramesMessage], [string, FramesMessage]];
    expect([...readRuns(first.runs!)]).toEqual([
      { number: 1, attempt: 1, sequence: 0, index: 0, tokens: Int32Array.of(5) },
    ]);
    expect(first.frames.map(({ id }) => id)).toEqual(['g-2', 'g-4']);
    expect(second.frames).toEqual([]);
    expect([...readRuns(second.runs!)].map(({ number }) => number)).toEqual([3]);
  });

  it('are whole for a gateway that does not number its requests', async () => {
    const { sender, sent } = setUp();
    sender.send(lane(undefined), tokens(5));
    await Promise.resolve();
    expect(sent[0]![1].runs).toBeUndefined();
    expect(sent[0]![1].frames).toHaveLength(1);
  });

  it('keep the order of each sequence, whatever its pieces have beside their tokens, and the limit of a message', () => {
    const piece = fc.record({
      lane: fc.nat(3),
      count: fc.nat(40),
      isWhole: fc.boolean(),
      flushes: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const { sender, sent } = setUp(700);
        const lanes = [0, 1, 2, 3].map((sequence) => lane(1, sequence));
        const wanted: [number, number, number][] = [];
        for (const { lane: at, count, isWhole, flushes } of pieces) {
          const one = tokens(...Array.from({ length: count }, (_, i) => i));
          wanted.push([at, lanes[at]!.next, count]);
          sender.send(lanes[at]!, isWhole ? { ...one, cachedTokens: 0 } : one);
          if (flushes) sender.flush();
        }
        sender.flush();
        const came = taken(sent);
        for (const sequence of [0, 1, 2, 3]) {
          const own = (list: typeof came) => list.filter(([of]) => of === sequence);
          expect(own(came)).toEqual(own(wanted));
        }
        for (const [, { runs, frames }] of sent)
          expect((runs?.byteLength ?? 0) + 256 * frames.length).toBeLessThan(701);
      }),
    );
  });

  it('name every request whose tokens could not be sent', () => {
    const { sender, unsent, breakPort } = setUp();
    breakPort();
    sender.send(lane(1), tokens(5));
    sender.send(lane(2), { ...tokens(5), finishReason: 'stop' });
    sender.flush();
    expect(unsent).toEqual(['g-1', 'g-2']);
  });
});
