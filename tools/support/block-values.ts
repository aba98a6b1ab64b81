import { fromHalf, type QuantizedType } from './quantized.js';

/** The values that a stored block stands for. */
export function blockValues(type: QuantizedType, block: Uint8Array): Float64Array {
  switch (type) {
    case 'q4_k':
    case 'q5_k':
      return withMinima(block, type === 'q5_k');
    case 'q6_k':
      return sixBits(block);
    case 'iq4_xs':
      return valuesWithScales(block);
    default:
      return groupValues(type, block);
  }
}

const halfAt = (block: Uint8Array, at: number) => fromHalf(block[at]! | (block[at + 1]! << 8));
const nibbleOf = (bytes: Uint8Array, i: number) => (i < 16 ? bytes[i]! & 15 : bytes[i - 16]! >> 4);

const IQ4_VALUES = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
const E2M1_VALUES = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6];

/** scale | (minimum) | (32 fifth bits) | 16 bytes of nibbles, or 32 bytes */
function groupValues(
  type: Exclude<QuantizedType, 'q4_k' | 'q5_k' | 'q6_k' | 'iq4_xs'>,
  block: Uint8Array,
): Float64Array {
  const d = halfAt(block, 0);
  const nibble = (i: number) => nibbleOf(block.subarray(block.length - 16), i);
  const five = (i: number) => nibble(i) + 16 * ((block[block.length - 20 + (i >> 3)]! >> (i & 7)) & 1);
  const value = {
    int8: (i: number) => d * ((block[2 + i]! << 24) >> 24),
    int4: (i: number) => d * nibble(i) + halfAt(block, 2),
    q5_0: (i: number) => d * (five(i) - 16),
    q5_1: (i: number) => d * five(i) + halfAt(block, 2),
    iq4_nl: (i: number) => d * IQ4_VALUES[nibble(i)]!,
    mxfp4: (i: number) => 2 ** (block[0]! - 127) * E2M1_VALUES[nibble(i)]!,
  }[type];
  return Float64Array.from({ length: 32 }, (_, i) => value(i));
}

/** d | 16 upper bits of scales | 4 bytes of lower ones | 128 bytes of nibbles */
function valuesWithScales(block: Uint8Array): Float64Array {
  const d = halfAt(block, 0);
  const upper = block[2]! | (block[3]! << 8);
  return Float64Array.from({ length: 256 }, (_, i) => {
    const g = i >> 5;
    const lower = (block[4 + (g >> 1)]! >> (4 * (g & 1))) & 15;
    const scale = (lower | (((upper >> (2 * g)) & 3) << 4)) - 32;
    return d * scale * IQ4_VALUES[nibbleOf(block.subarray(8 + 16 * g), i & 31)]!;
  });
}

/** d | dmin | 12 bytes of scales and minima | (32 bytes of fifth bits) | 128 bytes of nibbles */
function withMinima(block: Uint8Array, hasFifthBits: boolean): Float64Array {
  const [d, dmin] = [halfAt(block, 0), halfAt(block, 2)];
  const packed = block.subarray(4, 16);
  const nibbles = block.subarray(hasFifthBits ? 48 : 16);
  return Float64Array.from({ length: 256 }, (_, i) => {
    const g = i >> 5;
    const scale = g < 4 ? packed[g]! & 63 : (packed[g + 4]! & 15) | ((packed[g - 4]! >> 6) << 4);
    const minimum = g < 4 ? packed[g + 4]! & 63 : (packed[g + 4]! >> 4) | ((packed[g]! >> 6) << 4);
    const low = (nibbles[(g >> 1) * 32 + (i & 31)]! >> (4 * (g & 1))) & 15;
    const fifth = hasFifthBits ? (block[16 + (i & 31)]! >> g) & 1 : 0;
    return d * scale * (low + 16 * fifth) - dmin * minimum;
  });
}

/** 128 bytes of nibbles | 64 bytes of upper bits | 16 signed scales | d */
function sixBits(block: Uint8Array): Float64Array {
  const d = halfAt(block, 208);
  return Float64Array.from({ length: 256 }, (_, i) => {
    const half = i >> 7;
    const quarter = (i >> 5) & 3;
    const low = (block[half * 64 + (i & 63)]! >> (4 * (quarter >> 1))) & 15;
    const upper = (block[128 + half * 32 + (i & 31)]! >> (2 * quarter)) & 3;
    const scale = (block[192 + (i >> 4)]! << 24) >> 24;
    return d * scale * (low + 16 * upper - 32);
  });
}
