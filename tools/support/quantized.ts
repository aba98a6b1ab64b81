import { blockValues } from './block-values.js';

export const GROUP = 32;
const SUPERBLOCK = 256;
const BLOCKS = {
  int8: { elements: GROUP, bytes: 34 },
  int4: { elements: GROUP, bytes: 20 },
  q4_k: { elements: SUPERBLOCK, bytes: 144 },
  q5_k: { elements: SUPERBLOCK, bytes: 176 },
  q6_k: { elements: SUPERBLOCK, bytes: 210 },
  q5_0: { elements: GROUP, bytes: 22 },
  q5_1: { elements: GROUP, bytes: 24 },
  iq4_nl: { elements: GROUP, bytes: 18 },
  iq4_xs: { elements: SUPERBLOCK, bytes: 136 },
  mxfp4: { elements: GROUP, bytes: 17 },
};
export type QuantizedType = keyof typeof BLOCKS;
export const QUANTIZED_TYPES = Object.keys(BLOCKS) as readonly QuantizedType[];

/** Places of the half-precision scales and minima in a block, and the greatest magnitude of a weight in scales of 1. */
const SCALES: Readonly<Record<QuantizedType, { scale?: number; minimum?: number; greatest: number }>> = {
  int8: { scale: 0, greatest: 128 },
  int4: { scale: 0, minimum: 2, greatest: 8 },
  q4_k: { scale: 0, minimum: 2, greatest: 256 },
  q5_k: { scale: 0, minimum: 2, greatest: 512 },
  q6_k: { scale: 208, greatest: 2048 },
  q5_0: { scale: 0, greatest: 16 },
  q5_1: { scale: 0, minimum: 2, greatest: 16 },
  iq4_nl: { scale: 0, greatest: 127 },
  iq4_xs: { scale: 0, greatest: 4064 },
  mxfp4: { greatest: 12 },
};

export function blockElements(type: QuantizedType): number {
  return BLOCKS[type].elements;
}

export function blockBytes(type: QuantizedType): number {
  return BLOCKS[type].bytes;
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
  const stored = randomStored(type, rows, columns, random, spread);
  return { stored, exact: valuesOf(type, stored, rows, columns) };
}

/** The same without the values, which take far longer to compute. */
export function randomStored(
  type: QuantizedType,
  rows: number,
  columns: number,
  random: () => number,
  spread = 1,
): Uint8Array {
  const { scale, minimum, greatest } = SCALES[type];
  const blocks = rows * Math.ceil(columns / blockElements(type));
  const stored = new Uint8Array(blocks * blockBytes(type));
  for (let block = 0; block < blocks; block++) {
    const bytes = stored.subarray(block * blockBytes(type), (block + 1) * blockBytes(type));
    for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(random() * 256);
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    const sign = random() < 0.2 ? -1 : 1;
    const size = () => spread * (0.3 + random());
    if (scale === undefined) bytes[0] = 128 + Math.floor(Math.log2(size() / greatest));
    else view.setUint16(scale, toHalf((sign * size()) / greatest), true);
    if (minimum === undefined) continue;
    // Those of superblocks are multiplied by scales of up to 63, and subtracted.
    const low = blockElements(type) === GROUP ? -sign * size() : (sign * size()) / 32;
    view.setUint16(minimum, toHalf(low), true);
  }
  return stored;
}

/** Values that stored blocks stand for, [rows x columns]. */
export function valuesOf(
  type: QuantizedType,
  stored: Uint8Array,
  rows: number,
  columns: number,
): Float64Array {
  const values = new Float64Array(rows * columns);
  const elements = blockElements(type);
  const blocks = Math.ceil(columns / elements);
  for (let row = 0; row < rows; row++)
    for (let b = 0; b < blocks; b++) {
      const at = (row * blocks + b) * blockBytes(type);
      const ofBlock = blockValues(type, stored.subarray(at, at + blockBytes(type)));
      values.set(ofBlock.subarray(0, columns - b * elements), row * columns + b * elements);
    }
  return values;
}

/**
 * A row of activations after rounding to 8 bits in groups of 32. Unless the weights multiply as 8 bits, the scale of each
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
    if (weights !== 'int8' && weights !== 'iq4_nl' && weights !== 'iq4_xs') {
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
