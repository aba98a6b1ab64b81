import type { Checkpoint, TensorType } from '../../models/checkpoints/checkpoint.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { EnginePrecision, OutputPrecision, TensorPrecision } from '../executors/executor.js';

/** Precisions of an engine. */
export const PRECISIONS: readonly EnginePrecision[] = ['f32', 'bf16', 'int8', 'int4', 'stored'];
const OUTPUT_PRECISIONS: readonly OutputPrecision[] = ['f32', 'bf16', 'int8', 'stored'];

/** Precisions of a tensor of weights.bin. */
export const TENSOR_PRECISIONS: readonly TensorPrecision[] = [
  'f32',
  'bf16',
  'int8',
  'int4',
  'q4_k',
  'q5_k',
  'q6_k',
];

/** Number of weights that share a scale. */
export const WEIGHT_GROUP = 32;
/** Number of weights of a superblock. */
export const SUPERBLOCK = 256;
const BYTES_PER_GROUP = { int8: 34, int4: 20 } as const;
const BYTES_PER_SUPERBLOCK = { q4_k: 144, q5_k: 176, q6_k: 210 } as const;

export const isSuperblocked = (dtype: TensorPrecision): dtype is keyof typeof BYTES_PER_SUPERBLOCK =>
  Object.hasOwn(BYTES_PER_SUPERBLOCK, dtype);

/** Checks the value of --weights, which may be 'auto'; throws for an unknown one. */
export function checkWeightPrecision(precision: string): EnginePrecision | 'auto' {
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
 * | formats of up to 8 bits, some of them in superblocks | stored: each matrix has its own numbers (stored-precision.ts) |
 * | other formats of up to 8 bits, all of them | int8: Q8_0's numbers, a second rounding for the others |
 * | anything else | bf16 |
 *
 * @param checkpoint whose stored types are read
 * @param plan whose embedding and output layer are left out: they have a precision of their own
 */
export function automaticPrecision(
  checkpoint: Pick<Checkpoint, 'tensors'>,
  plan: NetworkPlan,
): EnginePrecision {
  const outside = outputWeights(plan);
  const types = typesOf(checkpoint, plan, (name) => !outside.has(name));
  const all = (fits: (type: TensorType) => boolean) => types.every(fits);
  if (all((type) => type === 'Q4_0' || type === 'Q4_1')) return 'int4';
  if (!all((type) => type.startsWith('Q'))) return 'bf16';
  return types.some(isInSuperblocks) ? 'stored' : 'int8';
}

/**
 * The precision of embedding and output layer: as they are stored where that is in superblocks, or where the other weights are;
 * else that of the other weights, but no less than 8 bits.
 */
export function automaticOutputPrecision(
  precision: EnginePrecision,
  checkpoint: Pick<Checkpoint, 'tensors'>,
  plan: NetworkPlan,
): OutputPrecision {
  if (precision === 'f32' || precision === 'bf16') return precision;
  const outputs = outputWeights(plan);
  const types = typesOf(checkpoint, plan, (name) => outputs.has(name));
  return precision === 'stored' || types.every(isInSuperblocks) ? 'stored' : 'int8';
}

function typesOf(
  checkpoint: Pick<Checkpoint, 'tensors'>,
  plan: NetworkPlan,
  isMeant: (weight: string) => boolean,
): TensorType[] {
  return plan.weights
    .filter(({ name, kind }) => kind === 'matrix' && isMeant(name))
    .flatMap(({ sources }) => sources.map(({ name }) => checkpoint.tensors.get(name)!.type));
}

/** True for storage types whose numbers superblocks keep. */
function isInSuperblocks(type: TensorType): boolean {
  return type === 'Q3_K' || type === 'Q4_K' || type === 'Q5_K' || type === 'Q6_K';
}

function oneOf<T extends string>(what: string, value: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === value);
  if (found !== undefined) return found;
  throw new Error(`${what} "${value}" is not supported; supported: auto, ${choices.join(', ')}.`);
}

/** Bytes of `count` rows as weights.bin stores them. */
export function storedBytes(dtype: TensorPrecision, rows: number, columns: number): number {
  if (dtype === 'f32' || dtype === 'bf16') return rows * columns * (dtype === 'f32' ? 4 : 2);
  if (isSuperblocked(dtype)) return rows * Math.ceil(columns / SUPERBLOCK) * BYTES_PER_SUPERBLOCK[dtype];
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
