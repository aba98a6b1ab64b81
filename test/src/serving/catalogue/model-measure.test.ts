import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { OFFERED } from '../../../../src/hub/offered-models.js';
import { measureModel } from '../../../../src/serving/on-demand/model-measure.js';
import { PUBLISHED_MODELS, writeHeaders } from '../../../../tools/published-models/published-models.js';
import { tinyModelPath } from '../../../../tools/support/test-engine.js';
import { freshFolders } from '../../../support/fresh-folders.js';

const makeFolder = freshFolders('skein-measure');

describe('the measure of a model', () => {
  it('reads all matrices of a dense model whose embedding is its output layer, and of another all but the embedding', async () => {
    const { weightBytes, readBytes, generates } = await measureModel(tinyModelPath('gqa'));
    expect(generates).toBe(true);
    expect(readBytes).toBeLessThanOrEqual(weightBytes);
    expect(readBytes).toBeGreaterThan(weightBytes / 2);
  });

  it('knows an encoder', async () => {
    expect(await measureModel(tinyModelPath('bert-mean'))).toMatchObject({
      generates: false,
      cacheBytesPerToken: 0,
    });
  });

  it('is refused for what is no model', async () => {
    await expect(measureModel(makeFolder())).rejects.toMatchObject({ code: 'SKEIN_CHECKPOINT' });
  });
});

/** Published models of which an offered one is a form. */
const PUBLISHED: Readonly<Record<string, string>> = {
  'HuggingFaceTB/SmolLM2-135M-Instruct': 'HuggingFaceTB/SmolLM2-135M-Instruct',
  'Qwen/Qwen3-0.6B-GGUF': 'Qwen/Qwen3-0.6B',
  'bartowski/Llama-3.2-1B-Instruct-GGUF': 'meta-llama/Llama-3.2-1B-Instruct',
  'bartowski/DeepSeek-R1-Distill-Qwen-1.5B-GGUF': 'deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B',
  'Qwen/Qwen3-4B-GGUF:Q4_K_M': 'Qwen/Qwen3-4B-Instruct-2507',
  'ggml-org/gpt-oss-20b-GGUF': 'openai/gpt-oss-20b',
  'Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M': 'Qwen/Qwen3-30B-A3B-Instruct-2507',
  'mistralai/Mixtral-8x7B-Instruct-v0.1': 'mistralai/Mixtral-8x7B-Instruct-v0.1',
};
/** The published form is of a later version, with a longer context. */
const LONGER = ['Qwen/Qwen3-4B-GGUF:Q4_K_M', 'Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M'];

describe.each(OFFERED.filter(({ name }) => PUBLISHED[name] !== undefined))(
  'what is said of $name',
  (offered) => {
    it('is what its headers say', async () => {
      const model = PUBLISHED_MODELS.find(({ id }) => id === PUBLISHED[offered.name])!;
      const path = writeHeaders(join(makeFolder(), 'model'), model);
      const measure = await measureModel(path);
      expect(measure.cacheBytesPerToken).toBe(2 * offered.cachedNumbers);
      if (!LONGER.includes(offered.name)) expect(measure.contextTokens).toBe(offered.contextTokens);
      // Forms differ in the precisions of embeddings and experts.
      expect(Math.abs(measure.readBytes / measure.weightBytes - offered.readShare)).toBeLessThan(0.07);
    });
  },
);

it('names offered models once, and stands for each family once', () => {
  const names = OFFERED.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const families = OFFERED.flatMap(({ family }) => family ?? []);
  expect(new Set(families).size).toBe(families.length);
});
