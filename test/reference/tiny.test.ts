import { afterAll, describe, expect, it } from 'vitest';
import { INSTRUCTION_SETS, openExecutor, TestEngines, tinyModelPath } from '../support/test-engine.js';
import { firstWrongToken, klDivergence, readGolden, TINY_VARIANTS, type TinyPrompt } from './goldens.js';
import { SequenceDriver } from './sequence-driver.js';

/** Greatest difference of a logit in f32; the logits' standard deviation is about 3. */
const F32_LOGIT_DIFFERENCE_MAX = 2e-4;
/**
 * Greatest divergence at one position, in nats, of bf16 weights, activations and KV cache from the f32 reference: about
 * twice what it is, which is the same with scalar and AVX2 kernels to three digits.
 */
const BF16_DIVERGENCE_MAX: Readonly<Record<(typeof TINY_VARIANTS)[number], number>> = {
  gqa: 6e-3,
  mha: 2e-3,
  bias: 3e-3,
  'wide-head': 2e-3,
  linear: 3e-3,
  dynamic: 2e-3,
  yarn: 1.5e-3,
  llama3: 2e-3,
  longrope: 4e-2,
  gguf: 4e-3,
};
/** Chunks of the context: whole, and pieces that end inside a block of 32 tokens. */
const CHUNKS = [256, 23];

const engines = new TestEngines();
afterAll(() => engines.remove());

async function openDriver(
  variant: string,
  precision: 'f32' | 'bf16',
  instructionSet = INSTRUCTION_SETS.at(-1)!,
) {
  const engine = await engines.get(tinyModelPath(variant), precision);
  const executor = openExecutor(engine, { instructionSet });
  return { executor, driver: new SequenceDriver(executor, engine.manifest.config) };
}

/** Calls `compare` with the golden's logits and ours for every prompt, position and way of chunking. */
function compareLogits(
  driver: SequenceDriver,
  prompts: TinyPrompt[],
  compare: (reference: number[], ours: Float32Array, where: string) => void,
): void {
  for (const { promptIds, ropeFinalLength, logits } of prompts) {
    const positions = logits.map(({ position }) => position);
    for (const chunk of CHUNKS) {
      driver.begin(ropeFinalLength);
      const ours = driver.logitsAt(promptIds, positions, chunk);
      for (const [i, { position, values }] of logits.entries()) {
        const where = `position ${position} of ${promptIds.length}, chunks of ${chunk}`;
        expect(ours[i]!.length, where).toBe(values.length);
        compare(values, ours[i]!, where);
      }
    }
  }
}

describe.each(TINY_VARIANTS)('tiny %s against Hugging Face transformers', (variant) => {
  const prompts = readGolden<TinyPrompt>(`tiny-${variant}`);

  it.each(INSTRUCTION_SETS)('f32 on %s gives the same logits', async (instructionSet) => {
    const { executor, driver } = await openDriver(variant, 'f32', instructionSet);
    compareLogits(driver, prompts, (reference, ours, where) => {
      const difference = reference.reduce((max, value, i) => Math.max(max, Math.abs(value - ours[i]!)), 0);
      expect(difference, where).toBeLessThan(F32_LOGIT_DIFFERENCE_MAX);
    });
    executor.close();
  });

  it('f32 gives the same greedy tokens', async () => {
    const { executor, driver } = await openDriver(variant, 'f32');
    for (const prompt of prompts) {
      const tokens = driver.greedy(prompt.promptIds, prompt.tokens.length, 256);
      expect(firstWrongToken(tokens, prompt), `prompt of ${prompt.promptIds.length}`).toBeNull();
    }
    executor.close();
  });

  it.each(INSTRUCTION_SETS)('bf16 on %s stays close', async (instructionSet) => {
    const { executor, driver } = await openDriver(variant, 'bf16', instructionSet);
    let greatest = 0;
    compareLogits(driver, prompts, (reference, ours, where) => {
      const divergence = klDivergence(reference, ours);
      greatest = Math.max(greatest, divergence);
      expect(divergence, where).toBeLessThan(BF16_DIVERGENCE_MAX[variant]);
    });
    console.log(
      `tiny ${variant}, bf16 on ${instructionSet}: greatest KL divergence ${greatest.toExponential(2)}`,
    );
    executor.close();
  });
});
