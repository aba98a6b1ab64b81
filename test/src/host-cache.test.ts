import { type ModelOptions, ParameterError, Skein } from 'skein';
import { describe, expect, it } from 'vitest';
import { tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';

const cacheDir = temporaryFolder('skein-host-cache');

const options: ModelOptions = {
  model: tinyModelPath('gqa'),
  weights: 'bf16',
  threads: 1,
  cacheDir,
  tokensPerBlock: 8,
  maxContextTokens: 128,
};
const PROMPTS = [5, 60, 120, 180].map((from) => Array.from({ length: 90 }, (_, index) => from + index));

interface Answer {
  tokens: number[];
  logProbs: number[];
}

/** Each prompt three times, one after the other; the prompt tokens that were in the cache, and the answers. */
async function ask(loaded: ModelOptions): Promise<{ cached: number; answers: Answer[] }> {
  const skein = await Skein.load(loaded);
  const answers: Answer[] = [];
  let cached = 0;
  for (const promptTokens of [...PROMPTS, ...PROMPTS, ...PROMPTS]) {
    const answer: Answer = { tokens: [], logProbs: [] };
    for await (const piece of skein.generate({
      promptTokens,
      maxTokens: 8,
      ignoreEos: true,
      logProbs: 0,
      seed: 7,
    })) {
      cached += piece.cachedTokens ?? 0;
      answer.tokens.push(...piece.tokens);
      answer.logProbs.push(...piece.logProbs.map(({ logProb }) => logProb));
    }
    answers.push(answer);
  }
  await skein.close();
  return { cached, answers };
}

describe('kvCacheSwapBytes', () => {
  it.each(['bf16', 'int8'] as const)(
    'brings prompts back that the KV cache has no room for, with the same bits, %s',
    async (kvCacheDtype) => {
      const without = await ask({ ...options, kvCacheDtype, prefixCaching: false });
      const small = { ...options, kvCacheDtype, prefixCaching: true, kvCacheTokens: 128 };
      const oneLevel = await ask(small);
      const twoLevels = await ask({ ...small, kvCacheSwapBytes: 2 ** 20 });
      expect(
        without.answers.every(({ tokens, logProbs }) => tokens.length === 8 && logProbs.length === 8),
      ).toBe(true);
      expect(oneLevel.answers).toEqual(without.answers);
      expect(twoLevels.answers).toEqual(without.answers);
      // 16 blocks hold one sequence: what the next prompt needs has been evicted when it comes again.
      expect(oneLevel.cached).toBeLessThan(PROMPTS.length * 90);
      // All but the last token, which is never taken from the cache.
      expect(twoLevels.cached).toBe(2 * PROMPTS.length * 89);
    },
  );

  it('without block reuse is refused by its name', async () => {
    const refused = Skein.load({ ...options, prefixCaching: false, kvCacheSwapBytes: 2 ** 20 });
    await expect(refused).rejects.toThrow(ParameterError);
    await expect(refused).rejects.toThrow('kvCacheSwapBytes is refused: without prefixCaching');
  });
});
