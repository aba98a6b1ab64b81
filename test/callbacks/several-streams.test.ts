import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TokenPiece, TokenRequest, TokenStream } from '../../callbacks/token-request.js';
import { InProcessHost } from '../../dist/host/in-process-host.js';
import { fakeEngine } from '../support/fake-engine.js';

const PROMPT = [5, 6, 7, 8, 9, 10, 11, 12, 13];
const ASK: TokenRequest = {
  promptTokens: PROMPT,
  maxNewTokens: 12,
  temperature: 1,
  seed: 3n,
  returnLogProbs: true,
};

let host: InProcessHost;
beforeAll(async () => {
  host = new InProcessHost({ ...fakeEngine(), maxBeamWidth: 4 });
  await host.ready;
});
afterAll(() => host.close());

/** All pieces of a stream as one. */
async function collect(stream: TokenStream) {
  const tokens: number[] = [];
  const logProbs: number[] = [];
  let last: TokenPiece | null = null;
  for await (const piece of stream) {
    tokens.push(...piece.tokens);
    logProbs.push(...(piece.logProbs ?? []));
    last = piece;
  }
  return { tokens, logProbs, last: last! };
}

describe('several streams of one request', () => {
  it('bring one sequence each, as each alone, with the seed and the times at the end of each', async () => {
    const together = await Promise.all(host.submitSeveral({ ...ASK, numSequences: 3 }).map(collect));
    expect(new Set(together.map(({ tokens }) => tokens.join())).size).toBe(3);
    for (const [index, { tokens, logProbs, last }] of together.entries()) {
      const alone = await collect(host.submit({ ...ASK, firstSequenceIndex: index }));
      expect([tokens, logProbs]).toEqual([alone.tokens, alone.logProbs]);
      expect(last).toMatchObject({ finishReason: 'length', seed: 3n });
      expect(last.timing!.numIterations).toBeGreaterThan(0);
    }
  });

  it('end their sequence when they are left, and the others go on', async () => {
    const [first, second, third] = host.submitSeveral({ ...ASK, maxNewTokens: 200, numSequences: 3 });
    for await (const _ of second!) break;
    const others = await Promise.all([first!, third!].map(collect));
    const whole = await Promise.all(
      host.submitSeveral({ ...ASK, maxNewTokens: 200, numSequences: 3 }).map(collect),
    );
    expect(others.map(({ tokens }) => tokens)).toEqual([whole[0]!.tokens, whole[2]!.tokens]);
    expect(host.running).toBe(0);
  });

  it('end the request when all are left, or it is cancelled', async () => {
    const streams = host.submitSeveral({ ...ASK, maxNewTokens: 240, numSequences: 2 });
    await Promise.all(
      streams.map(async (stream) => {
        for await (const _ of stream) break;
      }),
    );
    while (host.running > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const abort = new AbortController();
    const more = host.submitSeveral({ ...ASK, maxNewTokens: 240, numSequences: 2, signal: abort.signal });
    const ends = Promise.all(more.map(collect));
    abort.abort();
    for (const { last } of await ends) expect(last.finishReason).toBe('cancelled');
  });

  it('bring a beam each, whole, the best first', async () => {
    const ask = { ...ASK, temperature: 0, beams: { width: 4 }, endTokenIds: [40, 41] };
    const beams = await Promise.all(host.submitSeveral(ask).map(collect));
    const worth = beams.map(({ tokens, last }) => {
      const ended = last.finishReason === 'stop' ? 1 : 0;
      return last.cumLogProb! / (tokens.length + ended);
    });
    expect(worth).toEqual(worth.toSorted((a, b) => b - a));
    expect(new Set(beams.map(({ tokens }) => tokens.join())).size).toBe(4);
    for (const { tokens, logProbs, last } of beams) {
      expect(logProbs.length).toBe(tokens.length);
      expect(tokens).not.toContain(40);
      expect(tokens).not.toContain(41);
      expect(last.seed).toBe(3n);
    }
  });

  it('all say why the request is refused', async () => {
    for (const wrong of [
      { beams: { width: 5 } },
      { numSequences: 17 },
      { numSequences: 0 },
      { numSequences: 1e9 },
    ]) {
      const streams = host.submitSeveral({ ...ASK, temperature: 0, ...wrong });
      for (const stream of streams) {
        await expect(collect(stream)).rejects.toThrow(
          /beam_width is 5|numSequences is|17 sequences are asked for/,
        );
      }
    }
  });
});
