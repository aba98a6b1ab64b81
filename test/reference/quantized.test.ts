import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { EnginePrecision } from '../../engine/directory/engine-directory.js';
import { firstWrongToken } from '../../tools/support/goldens.js';
import { SequenceDriver } from '../../tools/support/sequence-driver.js';
import { openExecutor, TestEngines } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { QUANTIZED_MODELS, writeQuantizedModel } from '../support/quantized-models.js';
import { compareLogits, greatestDifference } from './compare-logits.js';

/** The standard deviation of the logits is about 2. */
const F32_LOGIT_DIFFERENCE_MAX = 2e-4;
/** The forms that engines run in round activations to 8 bits or to bf16. */
const STORED_LOGIT_DIFFERENCE_MAX = 0.5;

const folder = temporaryFolder('skein-quantized-reference');
const engines = new TestEngines();
afterAll(() => engines.remove());

describe.each(QUANTIZED_MODELS)(
  '$name against transformers on the dequantised weights',
  ({ name, prompts }) => {
    const path = writeQuantizedModel(join(folder, name), name);

    async function driverOf(precision: EnginePrecision) {
      const engine = await engines.get(path, precision);
      const executor = openExecutor(engine, { maxSeqLen: 96, tokensPerBlock: 16 });
      return { executor, driver: new SequenceDriver(executor, engine.manifest.config) };
    }

    it('has the same logits and the same greedy tokens', async () => {
      const { executor, driver } = await driverOf('f32');
      compareLogits(driver, prompts, [256], (reference, ours, where) => {
        expect(greatestDifference(reference, ours), where).toBeLessThan(F32_LOGIT_DIFFERENCE_MAX);
      });
      for (const prompt of prompts) {
        const tokens = driver.greedy(prompt.promptIds, prompt.tokens.length, 37);
        expect(firstWrongToken(tokens, prompt), `prompt of ${prompt.promptIds.length}`).toBeNull();
      }
      executor.close();
    });

    it('has nearly the same logits as it is stored', async () => {
      const { executor, driver } = await driverOf('stored');
      compareLogits(driver, prompts, [256], (reference, ours, where) => {
        expect(greatestDifference(reference, ours), where).toBeLessThan(STORED_LOGIT_DIFFERENCE_MAX);
      });
      executor.close();
    });
  },
);
