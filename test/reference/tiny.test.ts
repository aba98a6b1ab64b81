import { afterAll, describe, expect, it } from 'vitest';
import type { InstructionSet } from '../../callbacks/gpt-manager-options.js';
import type { WeightPrecision } from '../../engine/directory/engine-directory.js';
import {
  firstWrongToken,
  klDivergence,
  readGolden,
  TINY_VARIANTS,
  type TinyPrompt,
} from '../../tools/support/goldens.js';
import { SequenceDriver } from '../../tools/support/sequence-driver.js';
import { mean } from '../../tools/support/statistics.js';
import {
  BEST_INSTRUCTION_SET,
  INSTRUCTION_SETS,
  openExecutor,
  TestEngines,
  tinyModelPath,
} from '../../tools/support/test-engine.js';
import { multipliesPairs } from '../support/native-options.js';
import { compareLogits } from './compare-logits.js';

/** Greatest difference of a logit in f32; the logits' standard deviation is about 3. */
const F32_LOGIT_DIFFERENCE_MAX = 2e-4;
/**
 * Greatest and mean divergence over all positions, in nats, of weights, activations and KV cache in less than f32 from the
 * f32 reference: about twice what it is, which is the same with scalar and AVX2 kernels to three digits. bf16 is judged by
 * the greatest; one position can be anything with int4 and these random weights, the worst that can happen to four bits.
 * Unrelated logits diverge by about 9.
 */
const DIVERGENCE_MAX: Readonly<
  Record<(typeof TINY_VARIANTS)[number], { bf16: number; int8Mean: number; int4Mean: number }>
> = {
  gqa: { bf16: 6e-3, int8Mean: 1.6e-2, int4Mean: 1 },
  mha: { bf16: 2e-3, int8Mean: 2.5e-2, int4Mean: 1.5 },
  bias: { bf16: 3e-3, int8Mean: 1.2e-2, int4Mean: 0.5 },
  'wide-head': { bf16: 2e-3, int8Mean: 2e-2, int4Mean: 1.3 },
  linear: { bf16: 3e-3, int8Mean: 1.2e-2, int4Mean: 0.9 },
  dynamic: { bf16: 2e-3, int8Mean: 1.2e-2, int4Mean: 0.8 },
  yarn: { bf16: 1.5e-3, int8Mean: 1.8e-2, int4Mean: 1 },
  llama3: { bf16: 2e-3, int8Mean: 1.2e-2, int4Mean: 0.8 },
  longrope: { bf16: 4e-2, int8Mean: 5e-2, int4Mean: 1 },
  gguf: { bf16: 4e-3, int8Mean: 9e-3, int4Mean: 1 },
};
/** Chunks of the context: whole, and pieces that end inside a block of 32 tokens. */
const CHUNKS = [256, 23];
/** Scalar code, which is slow, in pieces alone: that they change no bit is shown in bitwise/. */
const chunksOn = (instructionSet: InstructionSet) => (instructionSet === 'scalar' ? [23] : CHUNKS);

const engines = new TestEngines();
afterAll(() => engines.remove());

async function openDriver(
  variant: string,
  precision: WeightPrecision,
  instructionSet = BEST_INSTRUCTION_SET,
) {
  const engine = await engines.get(tinyModelPath(variant), precision);
  const executor = openExecutor(engine, { instructionSet });
  return { executor, driver: new SequenceDriver(executor, engine.manifest.config) };
}

describe.each(TINY_VARIANTS)('tiny %s against Hugging Face transformers', (variant) => {
  const prompts = readGolden<TinyPrompt>(`tiny-${variant}`);

  it.each(INSTRUCTION_SETS)('f32 on %s gives the same logits', async (instructionSet) => {
    const { executor, driver } = await openDriver(variant, 'f32', instructionSet);
    compareLogits(driver, prompts, chunksOn(instructionSet), (reference, ours, where) => {
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

  describe.each(['bf16', 'int8', 'int4'] as const)('%s', (precision) => {
    it.each(INSTRUCTION_SETS)('on %s stays close', async (instructionSet) => {
      const { executor, driver } = await openDriver(variant, precision, instructionSet);
      const divergences: number[] = [];
      compareLogits(driver, prompts, chunksOn(instructionSet), (reference, ours) =>
        divergences.push(klDivergence(reference, ours)),
      );
      executor.close();
      const greatest = Math.max(...divergences);
      const average = mean(divergences);
      console.log(
        `tiny ${variant}, ${precision} on ${instructionSet}: KL divergence mean ${average.toExponential(2)}, ` +
          `greatest ${greatest.toExponential(2)}`,
      );
      const most = DIVERGENCE_MAX[variant];
      // Pairs of bf16 round the activations as well, to a sixteenth of int8's steps.
      if (precision === 'bf16' && multipliesPairs(instructionSet))
        expect(average).toBeLessThan(most.int8Mean / 5);
      else if (precision === 'bf16') expect(greatest).toBeLessThan(most.bf16);
      else expect(average).toBeLessThan(precision === 'int8' ? most.int8Mean : most.int4Mean);
    });
  });
});
