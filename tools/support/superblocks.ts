import { fromHalf } from './quantized.js';

export type SuperblockType = 'q4_k' | 'q5_k' | 'q6_k';

/** The 256 values that a stored superblock of GGML's Q4_K, Q5_K or Q6_K stands for. */
export function superblockValues(type: SuperblockType, block: Uint8Array): Float64Array {
  return type === 'q6_k' ? sixBits(block) : withMinima(block, type === 'q5_k');
}

const halfAt = (block: Uint8Array, at: number) => fromHalf(block[at]! | (block[at + 1]! << 8));

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
