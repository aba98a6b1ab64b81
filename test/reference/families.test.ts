import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../models/checkpoints/open-checkpoint.js';
import { firstWrongToken, logSumExp } from '../../tools/support/goldens.js';
import { argmax, SequenceDriver } from '../../tools/support/sequence-driver.js';
import { openExecutor, TestEngines } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { MADE_GGUFS, MADE_MODELS, writeMadeGguf, writeMadeModel } from '../support/made-models.js';
import { compareLogits, greatestDifference } from './compare-logits.js';

/** The standard deviation of the logits is about 2. */
const F32_LOGIT_DIFFERENCE_MAX = 2e-4;
/** Of log-probabilities of greedy tokens, which some families have: those of transformers in float64. Its own float32 is up to 7e-6 from them. */
const LOG_PROB_DIFFERENCE_MAX = 1e-5;
/** Whole, and pieces that end inside a block and inside a window. */
const CHUNKS = [256, 13];

const folder = temporaryFolder('skein-families');
const engines = new TestEngines();
afterAll(() => engines.remove());

/** Those whose GGUF files have other weights; the others are compared byte for byte by test/models/checkpoints/families-gguf.test.ts. */
const OTHER_IN_GGUF = [
  'qwen3.5-vl',
  'qwen3.5',
  'qwen3.5-moe',
  'qwen3-next',
  'mamba2',
  'falcon-h1',
  'nemotron-h',
  'nemotron-h-moe',
  'granite4-h',
  'granite4-h-moe',
];
describe.each(MADE_MODELS)('$name against Hugging Face transformers', (made) => {
  const path = writeMadeModel(join(folder, made.name), made);

  it('has the same logits, and the same greedy tokens', async () => {
    const engine = await engines.get(path, 'f32');
    const executor = openExecutor(engine, { maxSeqLen: 160, tokensPerBlock: 16 });
    const driver = new SequenceDriver(executor, engine.manifest.config);
    compareLogits(driver, made.prompts, CHUNKS, (reference, ours, where) => {
      expect(greatestDifference(reference, ours), where).toBeLessThan(F32_LOGIT_DIFFERENCE_MAX);
    });
    for (const prompt of made.prompts) {
      const where = `prompt of ${prompt.promptIds.length}`;
      const steps = driver.greedySteps(prompt.promptIds, prompt.tokens.length, 37);
      expect(firstWrongToken(steps.map(argmax), prompt), where).toBeNull();
      const logProbs = steps.map((logits, step) => logits[prompt.tokens[step]!]! - logSumExp(logits));
      const differences = (prompt.logProbs ?? []).map((one, step) => Math.abs(one - logProbs[step]!));
      expect(Math.max(0, ...differences), where).toBeLessThan(LOG_PROB_DIFFERENCE_MAX);
    }
    executor.close();
  });

  it.each(MADE_GGUFS.filter(({ name }) => name === made.name && OTHER_IN_GGUF.includes(name)))(
    "has them from the GGUF file of llama.cpp's converter",
    async (converted) => {
      const tensors = new Map(made.tensors.map((tensor) => [tensor[0], tensor]));
      const file = writeMadeGguf(join(folder, `${made.name}.gguf`), tensors, converted);
      const engine = await engines.get(file, 'f32');
      const executor = openExecutor(engine, { maxSeqLen: 160, tokensPerBlock: 16 });
      const driver = new SequenceDriver(executor, engine.manifest.config);
      compareLogits(driver, made.prompts, CHUNKS, (reference, ours, where) => {
        expect(greatestDifference(reference, ours), where).toBeLessThan(F32_LOGIT_DIFFERENCE_MAX);
      });
      executor.close();
    },
  );

  it.each(made.layouts.map((layout) => ({ layout })))(
    'is the same model with the tensors named as $layout',
    ({ layout }) => {
      const placesOf = (directory: string) => {
        const { config, tensors } = openCheckpoint(directory);
        return { config, tensors: [...tensors].map(([name, { offset, shape }]) => [name, shape, offset]) };
      };
      const other = writeMadeModel(join(folder, `${made.name}-renamed`), made, layout);
      const [{ config, tensors }, otherPlaces] = [placesOf(path), placesOf(other)];
      const withoutBase = (places: typeof tensors) => {
        const first = Math.min(...places.map(([, , offset]) => offset as number));
        return places.map(([name, shape, offset]) => [name, shape, (offset as number) - first]);
      };
      expect(otherPlaces.config).toEqual(config);
      expect(withoutBase(otherPlaces.tensors)).toEqual(withoutBase(tensors));
    },
  );
});
