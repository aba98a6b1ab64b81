import { afterAll, describe, expect, it } from 'vitest';
import type { WeightPrecision } from '../../engine/directory/engine-directory.js';
import { resolveLimits } from '../../engine/options/engine-limits.js';
import {
  firstWrongToken,
  klDivergence,
  readGolden,
  TINY_VARIANTS,
  type TinyPrompt,
  type WindowPrompt,
} from '../../tools/support/goldens.js';
import { SequenceDriver } from '../../tools/support/sequence-driver.js';
import {
  engineOptions,
  nativeEngine,
  TestEngines,
  type TestExecutorOptions,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import { compareLogits, greatestDifference } from '../reference/compare-logits.js';
import { describeExecutors, EXECUTORS, NATIVE, type TestExecutor } from '../support/executors.js';

// The goldens of test/reference, which the native executor meets on each instruction set and in each precision there: it is not asked again.
const ARCHITECTURES = ['mistral', 'qwen2', 'qwen3', 'phi3', 'gemma2', 'gemma3', 'gpt2'].concat(
  // Mixtures of experts.
  ['qwen3moe', 'qwen3moe-shares', 'mixtral'],
);
/** The standard deviation of the logits is about 3. */
const F32_LOGIT_DIFFERENCE_MAX = 2e-4;
/**
 * Mean divergence of tiny-gqa's logits in nats, as in test/reference/tiny.test.ts. Executors that compute in f32 round
 * weights alone, and none of the activations.
 */
const DIVERGENCE_MAX: [WeightPrecision, number][] = [
  ['bf16', 3.2e-3],
  ['int8', 1.6e-2],
  ['int4', 1],
];
const OTHERS = EXECUTORS.filter((executor) => executor !== NATIVE);
/** Pieces that end inside a block and inside a window; rows.test.ts has all others. */
const CHUNKS = [13];

const engines = new TestEngines();
afterAll(() => engines.remove());

async function openDriver(
  { open }: TestExecutor,
  model: string,
  { precision = 'f32', ...options }: TestExecutorOptions & { precision?: WeightPrecision } = {},
) {
  const engine = await engines.get(tinyModelPath(model), precision);
  const { window } = resolveLimits({ tokensPerBlock: 16 }, engine.manifest);
  const executor = await open(
    nativeEngine(engine),
    engineOptions(engine, { tokensPerBlock: 16, kvDtype: 'f32', ...window?.options, ...options }),
  );
  return { executor, driver: new SequenceDriver(executor, engine.manifest.config) };
}

describeExecutors((on) => {
  describe.each([...TINY_VARIANTS, ...ARCHITECTURES])(
    'tiny %s against Hugging Face transformers',
    (model) => {
      const prompts = readGolden<TinyPrompt>(`tiny-${model}`);

      it('has the same logits, and the same greedy tokens', async () => {
        const { executor, driver } = await openDriver(on, model);
        compareLogits(driver, prompts, CHUNKS, (reference, ours, where) => {
          expect(greatestDifference(reference, ours), where).toBeLessThan(F32_LOGIT_DIFFERENCE_MAX);
        });
        // Steps of one row are the same whatever the prompt: the longest, in one piece.
        const prompt = prompts.at(-1)!;
        expect(
          firstWrongToken(driver.greedy(prompt.promptIds, prompt.tokens.length, 256), prompt),
        ).toBeNull();
        executor.close();
      });
    },
  );

  it.each(DIVERGENCE_MAX)('weights in %s stay close', async (precision, most) => {
    // Each type of cache with one precision or more.
    const place = DIVERGENCE_MAX.findIndex(([name]) => name === precision);
    for (const kvDtype of [on.kvDtypes[place % on.kvDtypes.length]!]) {
      const { executor, driver } = await openDriver(on, 'gqa', { precision, kvDtype });
      const divergences: number[] = [];
      compareLogits(driver, readGolden<TinyPrompt>('tiny-gqa'), CHUNKS, (reference, ours) =>
        divergences.push(klDivergence(reference, ours)),
      );
      executor.close();
      const mean = divergences.reduce((sum, value) => sum + value, 0) / divergences.length;
      expect(mean, `${kvDtype} cache`).toBeLessThan(most);
    }
  });

  it.each(readGolden<WindowPrompt>('windows'))(
    'a window of $window with $sinks sinks has the same logits, and the same greedy tokens',
    async ({ window, sinks, ...prompt }) => {
      const options = { maxAttentionWindow: window, sinkTokenLength: sinks };
      const { executor, driver } = await openDriver(on, 'gqa', options);
      const asked = [{ ...prompt, ropeFinalLength: prompt.promptIds.length }];
      compareLogits(driver, asked, [23], (reference, ours, where) => {
        expect(greatestDifference(reference, ours), where).toBeLessThan(F32_LOGIT_DIFFERENCE_MAX);
      });
      const tokens = driver.greedy(prompt.promptIds, prompt.tokens.length, 50);
      expect(firstWrongToken(tokens, prompt)).toBeNull();
      executor.close();
    },
  );
}, OTHERS);
