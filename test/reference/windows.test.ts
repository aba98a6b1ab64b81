import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { ExecutorOptions } from '../../engine/executors/executor.js';
import { resolveLimits } from '../../engine/options/engine-limits.js';
import { firstWrongToken, klDivergence, readGolden, type WindowPrompt } from '../../tools/support/goldens.js';
import { SequenceDriver } from '../../tools/support/sequence-driver.js';
import { openExecutor, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { instructionSets } from '../support/native-options.js';

const F32_LOGIT_DIFFERENCE_MAX = 2e-4;
const BF16_DIVERGENCE_MAX = 0.05;
/** Whole, pieces that end inside a block, and one token at a time. */
const CHUNKS = [256, 23, 1];

const engines = new TestEngines();
const folder = temporaryFolder('skein-windows');
afterAll(() => engines.remove());

async function openDriver(
  { window, sinks }: WindowPrompt,
  precision: 'f32' | 'bf16',
  options: Partial<ExecutorOptions>,
) {
  const engine = await engines.get(tinyModelPath('gqa'), precision);
  const executor = openExecutor(engine, {
    tokensPerBlock: 16,
    maxAttentionWindow: window,
    sinkTokenLength: sinks,
    ...options,
  });
  return { executor, driver: new SequenceDriver(executor, engine.manifest.config) };
}

/** Logits at the golden's positions, for each way of chunking. */
function* comparisons(driver: SequenceDriver, { promptIds, logits }: WindowPrompt) {
  for (const chunk of CHUNKS) {
    driver.begin(promptIds.length);
    const ours = driver.logitsAt(
      promptIds,
      logits.map(({ position }) => position),
      chunk,
    );
    for (const [i, { position, values }] of logits.entries()) {
      yield { reference: values, ours: ours[i]!, where: `position ${position}, chunks of ${chunk}` };
    }
  }
}

const prompts = readGolden<WindowPrompt>('windows');

describe.each(prompts)(
  'a window of $window with $sinks sinks against Hugging Face transformers',
  (prompt) => {
    it.each(instructionSets)('f32 on %s gives the same logits', async (instructionSet) => {
      const { executor, driver } = await openDriver(prompt, 'f32', { instructionSet });
      for (const { reference, ours, where } of comparisons(driver, prompt)) {
        const difference = reference.reduce((max, value, i) => Math.max(max, Math.abs(value - ours[i]!)), 0);
        expect(difference, where).toBeLessThan(F32_LOGIT_DIFFERENCE_MAX);
      }
      executor.close();
    });

    it.each([8, 32])('f32 gives the same greedy tokens, %i tokens per block', async (tokensPerBlock) => {
      const { executor, driver } = await openDriver(prompt, 'f32', { tokensPerBlock });
      const tokens = driver.greedy(prompt.promptIds, prompt.tokens.length, 50);
      expect(firstWrongToken(tokens, prompt)).toBeNull();
      executor.close();
    });

    it('bf16 stays close', async () => {
      const { executor, driver } = await openDriver(prompt, 'bf16', {});
      for (const { reference, ours, where } of comparisons(driver, prompt)) {
        expect(klDivergence(reference, ours), where).toBeLessThan(BF16_DIVERGENCE_MAX);
      }
      executor.close();
    });

    it('is another answer than that of no window', async () => {
      const { executor, driver } = await openDriver(prompt, 'f32', {
        maxAttentionWindow: 256,
        sinkTokenLength: 0,
      });
      const differences = Array.from(comparisons(driver, prompt), ({ reference, ours }) =>
        reference.reduce((max, value, i) => Math.max(max, Math.abs(value - ours[i]!)), 0),
      );
      expect(Math.max(...differences)).toBeGreaterThan(0.1);
      executor.close();
    });
  },
);

it('the sliding window of a Mistral model is the window of its engine', async () => {
  const prompt = prompts.find(({ window, sinks }) => window === 20 && sinks === 0)!;
  const model = join(folder, 'mistral');
  cpSync(tinyModelPath('gqa'), model, { recursive: true });
  const config = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8')) as Record<string, unknown>;
  const mistral = {
    ...config,
    architectures: ['MistralForCausalLM'],
    model_type: 'mistral',
    sliding_window: 20,
  };
  writeFileSync(join(model, 'config.json'), JSON.stringify(mistral));
  const engine = await engines.get(model, 'f32');
  const { window } = resolveLimits({}, engine.manifest);
  expect(window?.options).toEqual({ maxAttentionWindow: 20, sinkTokenLength: 0 });
  const executor = openExecutor(engine, { ...window!.options, numBlocks: window!.maxBlocks });
  const driver = new SequenceDriver(executor, engine.manifest.config);
  const tokens = driver.greedy(prompt.promptIds, prompt.tokens.length, 256);
  expect(firstWrongToken(tokens, prompt)).toBeNull();
  executor.close();
});
