import { Skein } from 'skein';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/fresh-folders.js';
import { describeWithTestModel, testModelPath } from '../support/test-model.js';

const cacheDir = temporaryFolder('skein-drafts');

const LIST = Array.from({ length: 12 }, (_, i) => `item ${i + 1}: the price is ${i + 3} euros`).join('\n');
const PROMPTS = [
  `${LIST}\n\nThe same list again:\n${LIST.slice(0, 60)}`,
  'to be or not to be, to be or not to be, to be',
];

describeWithTestModel('SmolLM2 with prompt lookup', () => {
  it('answers as without, bit for bit, greedy and sampled', async () => {
    const skein = await Skein.load({
      model: testModelPath!,
      weights: 'bf16',
      speculate: 'ngram',
      maxActiveRequests: 4,
      maxContextTokens: 512,
      cacheDir,
    });
    let drafted = 0;
    skein.onStats((stats) => {
      drafted += stats.draftedTokens;
    });
    for (const [i, prompt] of PROMPTS.entries()) {
      const asked = { prompt, temperature: 0.7 * i, seed: 3, maxTokens: 32, ignoreEos: true, logProbs: 0 };
      const without = await skein.complete({ ...asked, maxDraftLen: 0 });
      expect(await skein.complete(asked)).toStrictEqual(without);
    }
    expect(drafted).toBeGreaterThan(0);
    await skein.close();
  });
});
