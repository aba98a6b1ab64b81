import type { KvDtype } from '../../../../../kvcache/cache-shape.js';
import { throughQuants } from '../../../../support/kv-quants.js';
import { fromBf16, toBf16 } from './kernel-hooks.js';

export const KV_DTYPES: readonly KvDtype[] = ['f32', 'bf16', 'int8'];

interface PoolShape {
  dtype: KvDtype;
  tokensPerBlock: number;
  kvHeads: number;
  headDim: number;
}

export type Pool = Float32Array | Uint16Array | Uint8Array;

/** Elements of one block, in a pool of `poisonedPool`. */
export function blockElements({ dtype, tokensPerBlock, kvHeads, headDim }: PoolShape): number {
  const perToken = dtype === 'int8' ? 2 * Math.ceil(headDim / 2) + headDim + 8 : 2 * headDim;
  return kvHeads * tokensPerBlock * perToken;
}

/** Blocks that hold NaN, with int8 in all of their scales. */
export function poisonedPool(shape: PoolShape, blocks: number): Pool {
  const elements = blocks * blockElements(shape);
  if (shape.dtype === 'f32') return new Float32Array(elements).fill(Number.NaN);
  return shape.dtype === 'bf16'
    ? new Uint16Array(elements).fill(0x7fc0)
    : new Uint8Array(elements).fill(0xff);
}

export function zeroBlock(pool: Pool, shape: PoolShape, block: number): void {
  const size = blockElements(shape);
  pool.fill(0, block * size, (block + 1) * size);
}

/** Each head as its whole numbers stand for it, which keys and queries are turned for. */
export function asQuants(
  values: Float32Array,
  headDim: number,
  most: number,
  isTurned: boolean,
): Float32Array {
  const result = new Float32Array(values.length);
  for (let at = 0; at < values.length; at += headDim)
    result.set(throughQuants(values.subarray(at, at + headDim), most, isTurned), at);
  return result;
}

/** Keys or values as the cache holds them: rounded to its type. */
export function inCache(
  part: 'keys' | 'values',
  dtype: KvDtype,
  values: Float32Array,
  headDim: number,
): Float32Array {
  if (dtype === 'f32') return values;
  return dtype === 'bf16' ? fromBf16(toBf16(values)) : asQuants(values, headDim, 127, part === 'keys');
}
