import type { TensorType } from '../checkpoint.js';
import type { RawTensor } from '../raw-tensor.js';
import { codeBits, type QuantizedSource } from './quantized-source.js';

/** Numbers of a block of each type below. */
const BLOCK = 32;

/**
 * The type as whose blocks a quantised matrix is read, which has the same numbers where a block's columns share a scale:
 *
 *   | codes | zero | read as |
 *   |---|---|---|
 *   | 4 bits | 8 | Q4_0: scale * (q - 8) |
 *   | 4 bits | its own for each scale, 0 .. 16 | Q5_0: scale * (q - 16), q = code - zero + 16 |
 *   | 8 bits | 128, or signed codes | Q8_0 |
 *   | e2m1, scales that are powers of 2 for 32 columns | | MXFP4 |
 *   | any other: FP8, NVFP4, act-order, 8 bits with zeros | | F32 |
 *
 * Scales of these types are half-precision numbers. A scale in F32 is rounded to one, by at most 1/2048 of it: less than each weight would lose in bf16.
 */
export function blockType(source: QuantizedSource, columns: number): TensorType {
  const { codes, zero, zeros, groups, divisor, columnsEach, scales } = source;
  const isWhole = columns % BLOCK === 0 && (columnsEach >= columns || columnsEach % BLOCK === 0);
  if (!isWhole || groups !== undefined || divisor !== undefined) return 'F32';
  if (codes === 'e2m1') return scales.type === 'F8_E8M0' && columnsEach === BLOCK ? 'MXFP4' : 'F32';
  if (codes === 'e4m3' || scales.type === 'F8_E8M0' || scales.type === 'F8_E4M3') return 'F32';
  if (codeBits(codes) === 4) return zeros === undefined && zero === 8 ? 'Q4_0' : 'Q5_0';
  return zeros === undefined && zero === (codes === 'i8' ? 0 : 128) ? 'Q8_0' : 'F32';
}

/**
 * What becomes of the numbers of a quantised matrix that runs as it is stored. exact: they stay; scales: their scales are rounded to half
 * precision; bf16, int8: they are rounded.
 */
export type Kept = 'exact' | 'scales' | 'bf16' | 'int8';

export function keptNumbers({ type }: Pick<RawTensor, 'type'>, { codes, scales }: QuantizedSource): Kept {
  // Four bits and a scale for 16 of them lose little in 8 bits and a scale for 32, and bf16 would be twice as large.
  if (type === 'F32') return codes === 'e2m1' ? 'int8' : 'bf16';
  return scales.type === 'F32' ? 'scales' : 'exact';
}
