import type { Random } from './random.js';
import { superblockValues } from './superblocks.js';

export type QuantizedType = 'int8' | 'int4' | 'q4_k' | 'q5_k' | 'q6_k';
export const GROUP = 32;
const BLOCK_BYTES = { int8: 34, int4: 20, q4_k: 144, q5_k: 176, q6_k: 210 };
const SUPERBLOCK = 256;

export function blockElements(type: QuantizedType): number {
  return type === 'int8' || type === 'int4' ? GROUP : SUPERBLOCK;
}

export function blockBytes(type: QuantizedType): number {
  return BLOCK_BYTES[type];
}

/** The value of a half-precision number. */
export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

/** The half-precision number nearest to x, ties to even; x in range. */
export function toHalf(x: number): number {
  const magnitude = Math.abs(x);
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
  const exponent = Math.max(-14, Math.floor(Math.log2(magnitude || 2 ** -30)));
  const units = roundEven(magnitude / 2 ** (exponent - 10));
  // A carry out of the fraction is the next exponent, as the fields lie side by side.
  return sign | (units + (exponent > -14 || units >= 1024 ? (exponent + 14) * 1024 : 0));
}

function roundEven(x: number): number {
  const floor = Math.floor(x);
  const rest = x - floor;
  if (rest !== 0.5) return Math.round(x);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** A row-major matrix of stored blocks, and the values that they stand for. Blocks are filled up with anything. */
export function randomBlocks(
  type: QuantizedType,
  rows: number,
  columns: number,
  random: () => number,
  spread = 1,
): { stored: Uint8Array; exact: Float64Array } {
  const blocks = rows * Math.ceil(columns / blockElements(type));
  const stored = new Uint8Array(blocks * BLOCK_BYTES[type]);
  for (let block = 0; block < blocks; block++) {
    const bytes = stored.subarray(block * BLOCK_BYTES[type], (block + 1) * BLOCK_BYTES[type]);
    for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(random() * 256);
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    const sign = random() < 0.2 ? -1 : 1;
    if (blockElements(type) === SUPERBLOCK) {
      const scale = (sign * spread * (0.3 + random())) / { q4_k: 256, q5_k: 512, q6_k: 2048 }[type as 'q4_k'];
      view.setUint16(type === 'q6_k' ? 208 : 0, toHalf(scale), true);
      if (type !== 'q6_k') view.setUint16(2, toHalf((sign * spread * (0.3 + random())) / 32), true);
      continue;
    }
    view.setUint16(0, toHalf((sign * spread * (0.3 + random())) / (type === 'int8' ? 128 : 8)), true);
    if (type === 'int4') view.setUint16(2, toHalf(-sign * spread * (0.3 + random())), true);
  }
  return { stored, exact: valuesOf(type, stored, rows, columns) };
}

/** Values that stored blocks stand for, [rows x columns]. */
export function valuesOf(
  type: QuantizedType,
  stored: Uint8Array,
  rows: number,
  columns: number,
): Float64Array {
  const values = new Float64Array(rows * columns);
  if (type !== 'int8' && type !== 'int4') {
    for (let block = 0; block * SUPERBLOCK < values.length; block++) {
      const bytes = stored.subarray(block * BLOCK_BYTES[type], (block + 1) * BLOCK_BYTES[type]);
      values.set(superblockValues(type, bytes), block * SUPERBLOCK);
    }
    return values;
  }
  const groups = Math.ceil(columns / GROUP);
  const view = new DataView(stored.buffer, stored.byteOffset, stored.byteLength);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const at = (row * groups + Math.floor(column / GROUP)) * BLOCK_BYTES[type];
      const i = column % GROUP;
      const scale = fromHalf(view.getUint16(at, true));
      if (type === 'int8') {
        values[row * columns + column] = scale * view.getInt8(at + 2 + i);
      } else {
        const nibbles = view.getUint8(at + 4 + (i % 16));
        const quant = i < 16 ? nibbles & 15 : nibbles >> 4;
        values[row * columns + column] = scale * quant + fromHalf(view.getUint16(at + 2, true));
      }
    }
  return values;
}

/**
 * A row of activations after rounding to 8 bits in groups of 32. Unless the weights are int8, the scale of each
 * group is a whole multiple, at most 32767, of the row's unit.
 */
export function roundedActivations(row: ArrayLike<number>, weights: QuantizedType): Float64Array {
  const rounded = new Float64Array(row.length);
  const groups = Array.from({ length: Math.ceil(row.length / GROUP) }, (_, g) =>
    Array.from({ length: Math.min(GROUP, row.length - g * GROUP) }, (_, i) => row[g * GROUP + i]!),
  );
  const greatest = groups.map((group) => Math.max(...group.map(Math.abs)));
  const ofRow = Math.max(...greatest);
  const perValue = Math.fround(Math.fround(127 * 32767) / ofRow);
  for (const [g, group] of groups.entries()) {
    if (greatest[g] === 0) continue;
    let scale = Math.fround(greatest[g]! / 127);
    let inverse = Math.fround(127 / greatest[g]!);
    if (weights !== 'int8') {
      const wanted = Math.fround(Math.fround(greatest[g]! * perValue) * Math.fround(1 / 127));
      const multiple = Math.min(32767, Math.max(1, Math.ceil(wanted)));
      scale = multiple * Math.fround(ofRow / Math.fround(127 * 32767));
      inverse = Math.fround(perValue / multiple);
    }
    for (const [i, x] of group.entries())
      rounded[g * GROUP + i] = scale * roundEven(Math.fround(x * inverse));
  }
  return rounded;
}

/** A generator for randomBlocks. */
export function uniform(random: Random): () => number {
  return () => random.uniform();
}
