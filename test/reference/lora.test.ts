import { afterAll, describe, expect, it } from 'vitest';
import { openAdapter } from '../../models/adapters/open-adapter.js';
import { firstWrongToken, klDivergence } from '../../tools/support/goldens.js';
import { SequenceDriver } from '../../tools/support/sequence-driver.js';
import { mean } from '../../tools/support/statistics.js';
import { BEST_INSTRUCTION_SET, openExecutor, TestEngines } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { type AdapterGolden, adapterGoldens, pathsOf } from '../support/lora-goldens.js';
import { instructionSets } from '../support/native-options.js';
import { compareLogits, greatestDifference } from './compare-logits.js';

/** Greatest difference of a logit in f32; the logits' standard deviation is about 3. */
const F32_LOGIT_DIFFERENCE_MAX = 2e-4;
/** Mean divergence in nats of weights in less than f32, whose adapter is in f32: that of the models without one, see tiny.test.ts. */
const DIVERGENCE_MAX = { bf16: 1e-2, int8: 3e-2, int4: 1.5 } as const;
const CHUNKS = [256, 23];
const MAX_RANK = 8;

const folder = temporaryFolder('skein-lora');
const goldens = adapterGoldens();

const engines = new TestEngines();
afterAll(() => engines.remove());

async function open(
  golden: AdapterGolden,
  precision: 'f32' | keyof typeof DIVERGENCE_MAX,
  instructionSet = BEST_INSTRUCTION_SET,
) {
  const { adapter, model } = pathsOf(golden, folder);
  const engine = await engines.get(model, precision);
  const executor = openExecutor(engine, { instructionSet, maxAdapters: 2, maxLoraRank: MAX_RANK });
  const { config } = engine.manifest;
  executor.adapters!.put(1, openAdapter(adapter, config, { maxRank: MAX_RANK }));
  return { executor, driver: new SequenceDriver(executor, config, 1) };
}

describe.each(goldens)('$adapter on $model against PEFT and transformers', (golden) => {
  it.each(instructionSets)('f32 on %s gives the same logits', async (instructionSet) => {
    const { executor, driver } = await open(golden, 'f32', instructionSet);
    compareLogits(driver, golden.prompts, CHUNKS, (reference, ours, where) => {
      expect(greatestDifference(reference, ours), where).toBeLessThan(F32_LOGIT_DIFFERENCE_MAX);
    });
    executor.close();
  });

  it('f32 gives the same greedy tokens', async () => {
    const { executor, driver } = await open(golden, 'f32');
    for (const prompt of golden.prompts) {
      const tokens = driver.greedy(prompt.promptIds, prompt.tokens.length, 256);
      expect(firstWrongToken(tokens, prompt), `prompt of ${prompt.promptIds.length}`).toBeNull();
    }
    executor.close();
  });

  it.each(['bf16', 'int8', 'int4'] as const)('%s stays close', async (precision) => {
    const { executor, driver } = await open(golden, precision);
    const divergences: number[] = [];
    compareLogits(driver, golden.prompts, CHUNKS, (reference, ours) =>
      divergences.push(klDivergence(reference, ours)),
    );
    executor.close();
    const average = mean(divergences);
    console.log(`${golden.adapter}, ${precision}: KL divergence mean ${average.toExponential(2)}`);
    expect(average).toBeLessThan(DIVERGENCE_MAX[precision]);
  });
});
