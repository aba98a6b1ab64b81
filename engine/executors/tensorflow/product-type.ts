import type { NetworkPlan } from '../../../network/plan.js';
import type { EngineTensor } from '../../directory/engine-directory.js';
import type { Gpu } from './gpu.js';
import { DType } from './graph/graph.js';
import { TensorFlowError } from './load-tensorflow.js';

/**
 * Type in which matrices are held and multiplied; sums, and everything that is not a product with a weight matrix, are
 * float32.
 */
export type ProductType = 'f32' | 'bf16' | 'f16';

export const PRODUCT_DTYPES: Readonly<Record<ProductType, DType>> = {
  f32: DType.float,
  bf16: DType.bfloat16,
  f16: DType.half,
};

/**
 * bf16 on a GPU that multiplies it (compute capability 8.0 and more), f16 on one that multiplies that (7.x), else f32: on a
 * CPU, and if the driver reports nothing. An engine whose matrices are stored as f32 (`--weights f32`) is multiplied in f32
 * everywhere. SKEIN_TENSORFLOW_PRODUCTS overrides this.
 *
 * @param gpu null: a CPU computes, or nothing is known of the GPU
 * @throws TensorFlowError
 */
export function productType(
  { plan, tensors }: { plan: NetworkPlan; tensors: readonly EngineTensor[] },
  gpu: Gpu | null,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): ProductType {
  const named = environment.SKEIN_TENSORFLOW_PRODUCTS;
  if (named) {
    if (named in PRODUCT_DTYPES) return named as ProductType;
    throw new TensorFlowError(
      `SKEIN_TENSORFLOW_PRODUCTS is "${named}"; it must be ${Object.keys(PRODUCT_DTYPES).join(', ')} or absent.`,
    );
  }
  const matrices = new Set(plan.weights.filter(({ kind }) => kind === 'matrix').map(({ name }) => name));
  const isExact = tensors.every(({ name, dtype }) => !matrices.has(name) || dtype === 'f32');
  if (gpu === null || isExact || gpu.computeCapability < 7) return 'f32';
  return gpu.computeCapability >= 8 ? 'bf16' : 'f16';
}
