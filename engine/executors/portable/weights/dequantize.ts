import type { TensorPrecision } from '../../../directory/engine-directory.js';
import { WEIGHT_GROUP } from '../../../directory/weight-blocks.js';
import { keptType } from '../convert/tensor-types.js';

/**
 * Turns rows of weights.bin into the float32 values that they stand for, the same values that native kernels use.
 *
 *   f32    as it is
 *   bf16   the upper half of a float32
 *   int8   f16 scale | 32 signed bytes                        w = scale * q
 *   int4   f16 scale | f16 minimum | 16 bytes of two quants   w = scale * q + minimum   (quant i low, i + 16 high)
 *   q4_k, q5_k, q6_k, iq4_xs     superblocks of 256 as GGML has them
 *   q5_0, q5_1, iq4_nl, mxfp4    blocks of 32 as GGML has them; rows are whole blocks too
 *
 * @param stored whole rows, one after the other, at a multiple of 4 bytes of its buffer
 * @param target [rows x columns]
 */
export function dequantizeRows(
  dtype: TensorPrecision,
  stored: Uint8Array,
  columns: number,
  target: Float32Array,
): void {
  const rows = target.length / columns;
  const { buffer, byteOffset } = stored;
  switch (dtype) {
    case 'f32':
      target.set(new Float32Array(buffer, byteOffset, target.length));
      break;
    case 'bf16':
      expandBf16(new Uint16Array(buffer, byteOffset, target.length), target);
      break;
    case 'int8':
      for (let row = 0, at = 0; row < rows; row++)
        at = expandInt8(stored, at, target, row * columns, columns);
      break;
    case 'int4':
      for (let row = 0, at = 0; row < rows; row++)
        at = expandInt4(stored, at, target, row * columns, columns);
      break;
    default: {
      const { blockElements, toF32 } = keptType(dtype);
      toF32(stored, target.length / blockElements, target);
    }
  }
}

function expandBf16(stored: Uint16Array, target: Float32Array): void {
  const bits = new Uint32Array(target.buffer, target.byteOffset, target.length);
  for (let i = 0; i < stored.length; i++) bits[i] = stored[i]! << 16;
}

/** Expands one row, from byte `start` on; returns the begin of the next one. */
function expandInt8(
  stored: Uint8Array,
  start: number,
  target: Float32Array,
  first: number,
  columns: number,
): number {
  let at = start;
  for (let begin = 0; begin < columns; begin += WEIGHT_GROUP, at += 34) {
    const scale = halfAt(stored, at);
    const count = Math.min(WEIGHT_GROUP, columns - begin);
    for (let i = 0; i < count; i++) target[first + begin + i] = scale * ((stored[at + 2 + i]! << 24) >> 24);
  }
  return at;
}

function expandInt4(
  stored: Uint8Array,
  start: number,
  target: Float32Array,
  first: number,
  columns: number,
): number {
  let at = start;
  for (let begin = 0; begin < columns; begin += WEIGHT_GROUP, at += 20) {
    const scale = halfAt(stored, at);
    const minimum = halfAt(stored, at + 2);
    const count = Math.min(WEIGHT_GROUP, columns - begin);
    for (let i = 0; i < count; i++) {
      const quants = stored[at + 4 + (i & 15)]!;
      target[first + begin + i] = scale * (i < 16 ? quants & 15 : quants >> 4) + minimum;
    }
  }
  return at;
}

/**
 * 2 ** (exponent - 25) for each exponent of a half-precision number, to be multiplied with its 11 digits as a whole
 * number.
 */
const UNITS = Float64Array.from({ length: 31 }, (_, exponent) => 2 ** (Math.max(exponent, 1) - 25));

/** Reads the half-precision number at a byte. */
function halfAt(bytes: Uint8Array, at: number): number {
  const high = bytes[at + 1]!;
  const exponent = (high >> 2) & 31;
  const fraction = ((high & 3) << 8) | bytes[at]!;
  const sign = high & 0x80 ? -1 : 1;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : Number.NaN;
  return sign * (exponent === 0 ? fraction : fraction + 1024) * UNITS[exponent]!;
}
