import type { ModelConfig } from '../models/model-config.js';
import type { InstructionSet, WeightPrecision } from './executor.js';

const PRECISIONS: readonly string[] = ['f32', 'bf16'] satisfies WeightPrecision[];

/**
 * The precision that a flag value stands for. 'auto' is a fixed table over instruction set and model, never a timing,
 * so that the same machine and model always get the same engine: bf16 everywhere today, as bf16 weights halve the
 * memory that a generation step reads and cost next to nothing in accuracy.
 *
 * @param config null where the model is not open yet; no line of the table asks for it today
 */
export function resolveWeightPrecision(
  precision: string,
  _instructionSet: InstructionSet | null,
  _config: ModelConfig | null,
): WeightPrecision {
  if (precision === 'auto') return 'bf16';
  if (PRECISIONS.includes(precision)) return precision as WeightPrecision;
  throw new Error(
    `Weight precision "${precision}" is not supported; supported: auto, ${PRECISIONS.join(', ')}.`,
  );
}
