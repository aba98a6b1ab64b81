import type { Checkpoint, TensorLocation, TensorType } from '../../models/checkpoints/checkpoint.js';
import { keptNumbers } from '../../models/checkpoints/quantized/quantized-blocks.js';
import type { PlanWeight } from '../../network/plan.js';
import type { TensorPrecision } from './engine-directory.js';
import { isMade } from './weight-blocks.js';

/** Consecutive rows of a weight that have one precision. */
export interface WeightPart {
  dtype: TensorPrecision;
  rows: number;
}

/**
 * Precisions that keep the numbers of storage types. Q3_K has groups and scales of q6_k's kind. Those without one are
 * rounded a second time: Q2_K, IQ1 to IQ3 and NVFP4 to int8, F16 to bf16. TQ1_0 and TQ2_0 have three values, which int4 has.
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
  NVFP4: 'int8',
  IQ1_S: 'int8',
  IQ1_M: 'int8',
  IQ2_XXS: 'int8',
  IQ2_XS: 'int8',
  IQ2_S: 'int8',
  IQ3_XXS: 'int8',
  IQ3_S: 'int8',
  TQ1_0: 'int4',
  TQ2_0: 'int4',
};

/** True for storage types whose numbers only a kernel of their own keeps. */
export const isKept = (type: TensorType): boolean => !isMade(AS_STORED[type]);

/** True for storage types whose numbers no precision has: they are rounded to int8, which takes more bytes. */
export const isRoundedAgain = (type: TensorType): boolean => AS_STORED[type] === 'int8' && type !== 'Q8_0';

/** The precision of a tensor; a quantised matrix whose numbers no block has is rounded. */
function storedAs(tensor: TensorLocation): TensorPrecision {
  const kept = tensor.quantized && keptNumbers(tensor, tensor.quantized);
  return kept === 'bf16' || kept === 'int8' ? kept : AS_STORED[tensor.type];
}

/**
 * Parts of a matrix, each in the precision that its sources are stored in. Products take a stack in its parts, a gated one gate and
 * up; other ops have matrices of one source.
 *
 *   q Q4_K | k Q4_K | v Q6_K   ->   q4_k: the rows of q and k | q6_k: those of v
 *   gate Q4_K | up Q6_K        ->   q4_k: the rows of gate | q6_k: those of up
 */
export function storedParts(checkpoint: Pick<Checkpoint, 'tensors'>, weight: PlanWeight): WeightPart[] {
  const parts: WeightPart[] = [];
  for (const { name, rows } of weight.sources) {
    const dtype = storedAs(checkpoint.tensors.get(name)!);
    const last = parts.at(-1);
    if (last?.dtype === dtype) last.rows += rows;
    else parts.push({ dtype, rows });
  }
  return parts;
}
