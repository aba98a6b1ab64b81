import { InProcessHost, RequestError, type TokenPiece, type TokenRequest } from 'skein';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeRequest, runAlone } from '../../tools/support/loop-harness.js';
import { fakeEngine } from '../support/fake-engine.js';

const VOCAB = 100;
const PROMPT = Array.from({ length: 13 }, (_, i) => (5 * i + 2) % VOCAB);
const ASK: TokenRequest = {
  promptTokens: PROMPT,
  maxNewTokens: 8,
  temperature: 0,
  returnContextLogits: true,
  returnGenerationLogits: true,
  returnContextLogProbs: true,
  topContextLogProbs: 2,
};

let host: InProcessHost;
beforeAll(() => {
  host = new InProcessHost(
    fakeEngine('', { maxReturnedLogitsBytes: 4 * VOCAB * 40, kvCacheConfig: { enableBlockReuse: true } }),
  );
});
afterAll(() => host.close({ abort: true }));

async function collect(request: TokenRequest): Promise<TokenPiece[]> {
  const pieces: TokenPiece[] = [];
  for await (const piece of host.submit(request)) pieces.push(piece);
  return pieces;
}

const logitsOf = (pieces: readonly TokenPiece[]) =>
  pieces.flatMap(({ generationLogits }) => [...generationLogits!]);

describe('a token request', () => {
  it('gets logits with its tokens, and those of the prompt with the first piece', async () => {
    const [whole] = await collect({ ...ASK, streaming: false });
    expect(whole!.tokens.length).toBe(8);
    expect(whole!.generationLogits!.length).toBe(8 * VOCAB);
    expect(whole!.contextLogits!.length).toBe(PROMPT.length * VOCAB);
    expect(whole!.contextLogProbs!.length).toBe(PROMPT.length - 1);
    expect(whole!.contextTopTokens!.length).toBe(2 * (PROMPT.length - 1));
    expect(whole!.generationLogits!.slice(0, VOCAB)).toEqual(whole!.contextLogits!.slice(-VOCAB));

    const streamed = await collect(ASK);
    expect(logitsOf(streamed)).toEqual([...whole!.generationLogits!]);
    expect(streamed[0]!.contextLogits).toEqual(whole!.contextLogits);
    expect(streamed[0]!.contextTopLogProbs).toEqual(whole!.contextTopLogProbs);
    for (const piece of streamed) {
      expect(piece.generationLogits!.length).toBe(piece.tokens.length * VOCAB);
      if (piece !== streamed[0]) {
        expect(piece.contextLogits).toBeUndefined();
        expect(piece.contextLogProbs).toBeUndefined();
      }
    }
  });

  it('gets none of it where it does not ask', async () => {
    for (const piece of await collect({ promptTokens: PROMPT, maxNewTokens: 3, temperature: 0 })) {
      for (const name of ['generationLogits', 'contextLogits', 'contextLogProbs', 'contextTopTokens']) {
        expect(piece).not.toHaveProperty(name);
      }
    }
  });

  it('gets no row for an end token that it is not shown', async () => {
    const { tokens } = runAlone(makeRequest(1n, PROMPT, 8));
    const end = tokens[4]!;
    const shown = tokens.indexOf(end);
    const all = logitsOf(await collect({ ...ASK, streaming: false }));
    for (const endTokenIds of [[end], [98, end]]) {
      for (const streaming of [true, false]) {
        const pieces = await collect({ ...ASK, endTokenIds, streaming });
        expect(logitsOf(pieces)).toEqual(all.slice(0, shown * VOCAB));
      }
    }
  });

  it('that asks for more than there may be is refused, and says whether it may come again', async () => {
    const tooMuch = await collect({ ...ASK, maxNewTokens: 60, streaming: false }).catch((error) => error);
    expect(tooMuch).toBeInstanceOf(RequestError);
    expect(tooMuch.message).toMatch(/are 29200 bytes; maxReturnedLogitsBytes is 16000/);
    expect(tooMuch.isInvalid).toBe(true);
  });

  it('has counts of blocks and pauses with its times', async () => {
    const request = { promptTokens: [...PROMPT, 1, 2, 3, 4, 5], maxNewTokens: 2, temperature: 0 };
    const timings = [];
    for (let i = 0; i < 2; i++) timings.push((await collect(request)).at(-1)!.timing);
    const numIterations = 2;
    expect(timings[0]).toMatchObject({ numIterations, numPauses: 0, reusedBlocks: 1, missedBlocks: 1 });
    expect(timings[1]).toMatchObject({ numIterations, numPauses: 0, reusedBlocks: 2, missedBlocks: 0 });
  });

  it('carries its retention, and refuses one that no tensor could carry', async () => {
    const retention = { ranges: [{ start: 0, end: 8, priority: 90 }], generated: { priority: 0 } };
    await collect({ promptTokens: PROMPT, maxNewTokens: 2, temperature: 0, retention });
    const wrong = { ranges: [{ start: 0, priority: 90, durationMs: 0.5 }] };
    const refused = collect({ promptTokens: PROMPT, maxNewTokens: 2, retention: wrong });
    await expect(refused).rejects.toThrow(/retention is 0.5; it must be an integer from 0/);
    const outOfRange = { generated: { priority: 101 } };
    const alsoRefused = collect({ promptTokens: PROMPT, maxNewTokens: 2, retention: outOfRange });
    await expect(alsoRefused).rejects.toThrow(/retention: A retention priority is 101/);
  });
});
