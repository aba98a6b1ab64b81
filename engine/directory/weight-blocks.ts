import type { TensorPrecision, WeightPrecision } from './engine-directory.js';

/** Number of weights that share a scale. */
export const WEIGHT_GROUP = 32;
const SUPERBLOCK = 256;

/** Weights of a block (1: no blocks) and its bytes. */
const BLOCKS: Readonly<Record<TensorPrecision, { weights: number; bytes: number }>> = {
  f32: { weights: 1, bytes: 4 },
  bf16: { weights: 1, bytes: 2 },
  int8: { weights: WEIGHT_GROUP, bytes: 34 },
  int4: { weights: WEIGHT_GROUP, bytes: 20 },
  q4_k: { weights: SUPERBLOCK, bytes: 144 },
  q5_k: { weights: SUPERBLOCK, bytes: 176 },
  q6_k: { weights: SUPERBLOCK, bytes: 210 },
  q5_0: { weights: WEIGHT_GROUP, bytes: 22 },
  q5_1: { weights: WEIGHT_GROUP, bytes: 24 },
  iq4_nl: { weights: WEIGHT_GROUP, bytes: 18 },
  iq4_xs: { weights: SUPERBLOCK, bytes: 136 },
  mxfp4: { weights: WEIGHT_GROUP, bytes: 17 },
};

/** Precisions of a tensor of an engine. */
export const TENSOR_PRECISIONS = Object.keys(BLOCKS) as readonly TensorPrecision[];

/** True for a precision that weights of any other can be rounded to. */
export const isMade = (dtype: TensorPrecision): dtype is WeightPrecision =>
  dtype === 'f32' || dtype === 'bf16' || dtype === 'int8' || dtype === 'int4';

/** Bytes of rows in a precision, as weights.bin stores them. */
export function storedBytes(dtype: TensorPrecision, rows: number, columns: number): number {
  const { weights, bytes } = BLOCKS[dtype];
  return rows * Math.ceil(columns / weights) * bytes;
}

/**
 * True where rows of `columns` weights fit: blocks that are made are filled up, those that are kept are
 * whole.
 */
export function holdsRows(dtype: TensorPrecision, columns: number): boolean {
  return isMade(dtype) || columns % BLOCKS[dtype].weights === 0;
}
