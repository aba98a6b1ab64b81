import { InProcessHost, type TokenPiece, type TokenRequest } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fakeEngine } from '../support/fake-engine.js';

const PROMPT = Array.from({ length: 45 }, (_, i) => (5 * i + 2) % 97);
const ASK: TokenRequest = {
  promptTokens: PROMPT,
  maxNewTokens: 4,
  temperature: 0,
  returnContextProgress: true,
};

let host: InProcessHost;
beforeAll(() => {
  const chunks = { enableChunkedContext: true, maxNumTokens: 16, kvCacheConfig: { enableBlockReuse: true } };
  host = new InProcessHost(fakeEngine('', chunks));
});
afterAll(() => host.close({ abort: true }));

async function piecesOf(request: TokenRequest): Promise<TokenPiece[]> {
  const pieces: TokenPiece[] = [];
  await new Promise<void>((resolve, reject) => {
    host.submit(request).listen({
      onPiece: (piece) => {
        pieces.push(piece);
        if (piece.finishReason !== null) resolve();
      },
      onError: reject,
    });
  });
  return pieces;
}

describe('a token request that asks for the progress of its prompt', () => {
  it('is told after each chunk, and counts what the cache has', async () => {
    for (const [cached, expected] of [
      [0, [16, 32, 45]],
      [44, [45]],
    ] as const) {
      const pieces = await piecesOf(ASK);
      const progress = pieces.flatMap(({ contextProgress }) => contextProgress ?? []);
      expect(progress.map(({ done }) => done)).toEqual(expected);
      for (const one of progress) expect(one).toMatchObject({ cached });
      expect(pieces.slice(0, progress.length).every(({ tokens }) => tokens.length === 0)).toBe(true);
      expect(pieces.flatMap(({ cachedTokens }) => cachedTokens ?? [])).toEqual([cached]);
      expect(pieces.flatMap(({ tokens }) => [...tokens])).toHaveLength(4);
    }
  });

  it('is told nothing where it does not stream or does not ask', async () => {
    for (const fields of [{ streaming: false }, { returnContextProgress: false }]) {
      for (const piece of await piecesOf({ ...ASK, ...fields }))
        expect(piece).not.toHaveProperty('contextProgress');
    }
  });
});
