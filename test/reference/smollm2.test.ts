import { afterAll, beforeAll, expect, it } from 'vitest';
import type { NativeExecutor } from '../../engine/executors/native/native-executor.js';
import { firstWrongToken, GAP_MIN, readGolden, type Smollm2Prompt } from '../../tools/support/goldens.js';
import { argmax, SequenceDriver } from '../../tools/support/sequence-driver.js';
import {
  cacheOf,
  type Format,
  INT8_CACHE,
  openExecutor,
  precisionOf,
  TestEngines,
} from '../../tools/support/test-engine.js';
import { isShort } from '../support/scale.js';
import { describeWithTestModel, testModelPath } from '../support/test-model.js';
import { divergenceOf, teacherForced } from './teacher-forced.js';

/** Greatest difference of a logit in f32. */
const F32_LOGIT_DIFFERENCE_MAX = 2e-3;
/**
 * Divergence in nats of weights, activations and KV cache in less than f32 from the f32 reference, at one position and
 * on average, and the least share of greedy steps with the same token. The model's own weights have four bits (Q4_1; the
 * embedding eight), so that int4 loses nothing of them and differs by the rounding of the activations alone.
 */
const LIMITS = {
  bf16: { greatest: 0.01, mean: 1e-3, same: 0.95 },
  int8: { greatest: 0.15, mean: 0.01, same: 0.93 },
  int4: { greatest: 0.15, mean: 0.01, same: 0.93 },
  [INT8_CACHE]: { greatest: 0.05, mean: 5e-3, same: 0.94 },
};

/** One or two of each kind of text, and lengths on both sides of a split of the cache. */
const KINDS =
  /^(one token|plain story|digits|python|japanese|emoji|white space|chat capital|chat turns|long 130|long 400|long 1500)$/;
const prompts = readGolden<Smollm2Prompt>('smollm2').filter(({ name }) => KINDS.test(name));
/** The prompts whose divergence is measured: fewer on an emulated processor, which takes a second for a token. */
const measured = isShort
  ? prompts.filter(({ name }) => /^(one token|plain story|digits|chat capital)$/.test(name))
  : prompts;
/** What rounding of weights costs does not grow with a text; what rounding of the cache costs may: a long one is measured with its coarsest type. */
const measuredIn = (format: Format) =>
  measured.filter(({ promptIds }) => promptIds.length < (format === INT8_CACHE ? 1000 : 100));
const engines = new TestEngines();
afterAll(() => engines.remove());

async function open(format: Format) {
  const engine = await engines.get(testModelPath!, precisionOf(format));
  const executor = openExecutor(engine, {
    ...cacheOf(format),
    maxNumTokens: 2048,
    maxSeqLen: 2048,
    maxLogitRows: 128,
    threads: 2,
  });
  return { executor, driver: new SequenceDriver(executor, engine.manifest.config) };
}

describeWithTestModel('SmolLM2 in f32 against Hugging Face transformers', () => {
  let driver: SequenceDriver;
  let executor: NativeExecutor;
  beforeAll(async () => {
    ({ executor, driver } = await open('f32'));
  });
  afterAll(() => executor.close());

  it.each(prompts)('$name: logits, and the token of each step', (prompt) => {
    const { steps, chosen } = teacherForced(driver, prompt);
    for (const [i, { position, tokens, values }] of prompt.logits.entries()) {
      const difference = tokens.reduce(
        (max, t, k) => Math.max(max, Math.abs(values[k]! - chosen[i]![t]!)),
        0,
      );
      expect(difference, `position ${position}`).toBeLessThan(F32_LOGIT_DIFFERENCE_MAX);
    }
    for (const [step, logits] of steps.entries()) {
      if (prompt.gaps[step]! > GAP_MIN) expect(argmax(logits), `step ${step}`).toBe(prompt.tokens[step]);
    }
  });

  // The logits of all steps are compared above, and steps of one row are the same code for each text.
  it.each(prompts.filter(({ name }) => /^(one token|chat capital)$/.test(name)))(
    '$name: greedy tokens, one generation step each',
    (prompt) => {
      const tokens = driver.greedy(prompt.promptIds, prompt.tokens.length, 64);
      expect(firstWrongToken(tokens, prompt)).toBeNull();
    },
  );
});

describeWithTestModel('SmolLM2 against Hugging Face transformers in f32', () => {
  it.each(['bf16', 'int8', 'int4', INT8_CACHE] as const)('diverges little in %s', async (precision) => {
    const { executor, driver } = await open(precision);
    const { mean, greatest, same, text } = divergenceOf(
      measuredIn(precision).map((prompt) => ({ driver, prompt })),
    );
    executor.close();
    console.log(`SmolLM2, ${precision} against f32, top 20 and the rest, ${text}`);
    expect(mean).toBeLessThan(LIMITS[precision].mean);
    expect(greatest).toBeLessThan(LIMITS[precision].greatest);
    expect(same).toBeGreaterThan(LIMITS[precision].same);
  });
});
