import type { Checkpoint, TensorType } from '../../models/checkpoints/checkpoint.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { OutputPrecision, WeightPrecision } from '../executors/executor.js';

const PRECISIONS: readonly WeightPrecision[] = ['f32', 'bf16', 'int8', 'int4'];
const OUTPUT_PRECISIONS: readonly OutputPrecision[] = ['f32', 'bf16', 'int8'];

/** Number of weights that share a scale. */
export const WEIGHT_GROUP = 32;
const BYTES_PER_GROUP = { int8: 34, int4: 20 } as const;

/** Checks the value of --weights, which may be 'auto'; throws for an unknown one. */
export function checkWeightPrecision(precision: string): WeightPrecision | 'auto' {
  return precision === 'auto' ? precision : oneOf('Weight precision', precision, PRECISIONS);
}

/** Checks the value of --output-weights, which may be 'auto'; throws for an unknown one. */
export function checkOutputPrecision(precision: string): OutputPrecision | 'auto' {
  return precision === 'auto' ? precision : oneOf('Output precision', precision, OUTPUT_PRECISIONS);
}

/**
 * Precision that 'auto' means for a model. It comes from a table, never from a timing, and is written into engine.json,
 * so that a model always gets the same engine. It is the fastest format that rounds the checkpoint's weights no
 * further; for formats that no kernel computes with directly, it is the next larger one. The order of speed is the same
 * on every instruction set.
 *
 * | matrices of the layers are stored as | weights |
 * |---|---|
 * | Q4_0 or Q4_1, all of them | int4: the same numbers |
 * | other formats of up to 8 bits, all of them | int8: Q8_0's numbers, a second rounding for the others |
 * | anything else | bf16 |
 *
 * @param checkpoint whose stored types are read
 * @param plan whose embedding and output layer are left out: they have a precision of their own
 */
export function automaticPrecision(
  checkpoint: Pick<Checkpoint, 'tensors'>,
  plan: NetworkPlan,
): WeightPrecision {
  const outside = outputWeights(plan);
  const types = plan.weights
    .filter(({ name, kind }) => kind === 'matrix' && !outside.has(name))
    .flatMap(({ sources }) => sources.map(({ name }) => checkpoint.tensors.get(name)!.type));
  const all = (fits: (type: TensorType) => boolean) => types.every(fits);
  if (all((type) => type === 'Q4_0' || type === 'Q4_1')) return 'int4';
  return all((type) => type.startsWith('Q')) ? 'int8' : 'bf16';
}

/** The precision of embedding and output layer: that of the other weights, but no less than 8 bits. */
export function automaticOutputPrecision(precision: WeightPrecision): OutputPrecision {
  return precision === 'int4' ? 'int8' : precision;
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
    op.op === 'embedding' || op.op === 'addEmbedding' || (op.op === 'linear' && op.output === plan.logits)
      ? [op.weight]
      : [],
  );
  return new Set(names);
}
