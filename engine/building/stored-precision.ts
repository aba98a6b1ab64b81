import type { Checkpoint, TensorType } from '../../models/checkpoints/checkpoint.js';
import type { NetworkPlan, PlanWeight } from '../../network/plan.js';
import type { TensorPrecision } from '../executors/executor.js';
import { isMade } from './weight-blocks.js';

/** Consecutive rows of a weight that have one precision. */
export interface WeightPart {
  dtype: TensorPrecision;
  rows: number;
}

/**
 * Precisions that keep the numbers of storage types. Q3_K has groups and scales of q6_k's kind. Those without one are
 * rounded a second time: Q2_K to int8, F16 to bf16.
 */
const AS_STORED: Readonly<Record<TensorType, TensorPrecision>> = {
  F32: 'f32',
  F16: 'bf16',
  BF16: 'bf16',
  Q8_0: 'int8',
  Q4_0: 'int4',
  Q4_1: 'int4',
  Q5_0: 'q5_0',
  Q5_1: 'q5_1',
  Q2_K: 'int8',
  Q3_K: 'q6_k',
  Q4_K: 'q4_k',
  Q5_K: 'q5_k',
  Q6_K: 'q6_k',
  IQ4_NL: 'iq4_nl',
  IQ4_XS: 'iq4_xs',
  MXFP4: 'mxfp4',
};

/** True for storage types whose numbers only a kernel of their own keeps. */
export const isKept = (type: TensorType): boolean => !isMade(AS_STORED[type]);

/**
 * Parts of a matrix, each in the precision that its sources are stored in. A plain product takes parts of several
 * precisions; any other op needs one for all of the matrix, which is then the least of int8, bf16 and f32 that none of them is
 * above.
 *
 *   q Q4_K | k Q4_K | v Q6_K   ->   q4_k: the rows of q and k | q6_k: those of v
 */
export function storedParts(
  checkpoint: Pick<Checkpoint, 'tensors'>,
  plan: NetworkPlan,
  weight: PlanWeight,
): WeightPart[] {
  const parts: WeightPart[] = [];
  for (const { name, rows } of weight.sources) {
    const dtype = AS_STORED[checkpoint.tensors.get(name)!.type];
    const last = parts.at(-1);
    if (last?.dtype === dtype) last.rows += rows;
    else parts.push({ dtype, rows });
  }
  const isSplit = parts.length > 1;
  if (
    !isSplit ||
    plan.ops.every((op) => !('weight' in op) || op.weight !== weight.name || op.op === 'linear')
  )
    return parts;
  const has = (dtype: TensorPrecision) => parts.some((part) => part.dtype === dtype);
  const dtype = has('f32') ? 'f32' : has('bf16') ? 'bf16' : 'int8';
  return [{ dtype, rows: weight.rows }];
}
