import type { ModelConfig } from '../models/model-config.js';
import type { InstructionSet, OutputPrecision, WeightPrecision } from './executor.js';
import type { NetworkPlan } from './network/plan.js';

const PRECISIONS: readonly WeightPrecision[] = ['f32', 'bf16', 'int8', 'int4'];
const OUTPUT_PRECISIONS: readonly OutputPrecision[] = ['f32', 'bf16', 'int8'];

/** Weights of a group share a scale. */
export const WEIGHT_GROUP = 32;
const BYTES_PER_GROUP = { int8: 34, int4: 20 } as const;

/**
 * The precision that a flag value stands for. 'auto' is a fixed table over instruction set and model, never a timing,
 * so that the same machine and model always get the same engine: bf16 everywhere today, as bf16 weights halve the
 * memory that a generation step reads and cost next to nothing in accuracy. Every instruction set runs every precision.
 *
 * @param config null where the model is not open yet; no line of the table asks for it today
 */
export function resolveWeightPrecision(
  precision: string,
  _instructionSet: InstructionSet | null,
  _config: ModelConfig | null,
): WeightPrecision {
  return precision === 'auto' ? 'bf16' : oneOf('Weight precision', precision, PRECISIONS);
}

/** The precision of embedding and output layer: that of the other weights, but no less than 8 bits. */
export function resolveOutputPrecision(output: string, precision: WeightPrecision): OutputPrecision {
  if (output === 'auto') return precision === 'int4' ? 'int8' : precision;
  return oneOf('Output precision', output, OUTPUT_PRECISIONS);
}

function oneOf<T extends string>(what: string, value: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value);
  if (found !== undefined) return found;
  throw new Error(`${what} "${value}" is not supported; supported: auto, ${choices.join(', ')}.`);
}

/** Bytes of `count` rows as weights.bin stores them. */
export function storedBytes(dtype: WeightPrecision, rows: number, columns: number): number {
  if (dtype === 'f32' || dtype === 'bf16') return rows * columns * (dtype === 'f32' ? 4 : 2);
  return rows * Math.ceil(columns / WEIGHT_GROUP) * BYTES_PER_GROUP[dtype];
}

/** Names of the weights that embed tokens or make logits. */
export function outputWeights(plan: NetworkPlan): Set<string> {
  const names = plan.ops.flatMap((op) =>
    op.op === 'embedding' || (op.op === 'linear' && op.output === plan.logits) ? [op.weight] : [],
  );
  return new Set(names);
}
