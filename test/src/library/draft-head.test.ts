import { join } from 'node:path';
import { Skein } from 'skein';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { madeHeadPath } from '../../support/made-heads.js';
import { madeModelPath } from '../../support/made-models.js';

const folder = temporaryFolder('skein-library-head');

it('drafts with the head that a model has for it, and answers the same', async () => {
  const options = {
    model: madeHeadPath(folder, 'qwen3.5'),
    cacheDir: join(folder, 'cache'),
    kvCacheTokens: 512,
    maxActiveRequests: 4,
    threads: 1,
  };
  const asked = { promptTokens: [5, 9, 17, 30, 41, 50], maxTokens: 100, temperature: 0, ignoreEos: true };
  const plain = await Skein.load(options);
  const expected = (await plain.complete(asked)).tokens;
  await plain.close();
  const drafting = await Skein.load({ ...options, speculate: 'mtp' });
  let drafted = 0;
  drafting.onStats((stats) => {
    drafted += stats.draftedTokens;
  });
  const answers = await Promise.all([1, 2, 3].map(() => drafting.complete(asked)));
  for (const { tokens } of answers) expect(tokens).toEqual(expected);
  expect(drafted).toBeGreaterThan(0);
  await drafting.close();
});

it('refuses a model without a head', async () => {
  const model = madeModelPath(folder, 'qwen3.5');
  await expect(Skein.load({ model, cacheDir: join(folder, 'cache'), speculate: 'mtp' })).rejects.toThrow(
    `${model}: has no head that guesses tokens (mtp.* in safetensors, nextn in a GGUF, of Qwen3.5 and Qwen3-Next), which speculate mtp drafts with; leave it out.`,
  );
});
