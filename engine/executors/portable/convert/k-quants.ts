import { fromHalf, load16 } from '../../../../base/half.js';
import type { BlockReader } from './plain-types.js';

// Formats with blocks of 256 in groups of 16 or 32 with their own scales.
//
//   quants of 64 or 128 elements share 32 bytes: byte b holds, in fields of 4 or 2 bits,
//   the elements b, b + 32, b + 64 ... of its stretch

const { fround } = Math;

/** 16 scales (4 bits scale, 4 minimum) | 64 bytes | d | dmin */
export const q2kRow: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 84, t += 256) {
    const d = fromHalf(load16(source, s + 80));
    const dmin = fromHalf(load16(source, s + 82));
    for (let i = 0; i < 256; i++) {
      const scale = source[s + (i >> 4)]!;
      const q = (source[s + 16 + (i >> 7) * 32 + (i & 31)]! >> (2 * ((i >> 5) & 3))) & 3;
      target[t + i] = fround(fround(d * (scale & 15)) * q) - fround(dmin * (scale >> 4));
    }
  }
};

/** Scale of group g (of 16) of the block of Q3_K at `s`: four low bits in bytes 0 .. 7, two high bits in bytes 8 .. 11. */
export function q3kScale(source: Uint8Array, s: number, g: number): number {
  const packed = s + 96;
  const low = g < 8 ? source[packed + g]! & 15 : source[packed + g - 8]! >> 4;
  return (low | (((source[packed + 8 + (g & 3)]! >> (2 * (g >> 2))) & 3) << 4)) - 32;
}

/** Quant of element i of the same block, -4 .. 3: a set third bit means no offset. */
export function q3kQuant(source: Uint8Array, s: number, i: number): number {
  const low = (source[s + 32 + (i >> 7) * 32 + (i & 31)]! >> (2 * ((i >> 5) & 3))) & 3;
  return low - ((source[s + (i & 31)]! >> (i >> 5)) & 1 ? 0 : 4);
}

const Q3_SCALES = new Float32Array(16);

/** 32 bytes of third bits | 64 bytes | 12 bytes of scales | d */
export const q3kRow: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 110, t += 256) {
    const d = fromHalf(load16(source, s + 108));
    for (let g = 0; g < 16; g++) Q3_SCALES[g] = d * q3kScale(source, s, g);
    for (let i = 0; i < 256; i++) target[t + i] = Q3_SCALES[i >> 4]! * q3kQuant(source, s, i);
  }
};

/** Six-bit scale of group g (of 8) in Q4_K and Q5_K, whose 12 bytes of scales begin at `at`. */
function groupScale(source: Uint8Array, at: number, g: number): number {
  if (g < 4) return source[at + g]! & 63;
  return (source[at + g + 4]! & 15) | ((source[at + g - 4]! >> 6) << 4);
}

/** Six-bit minimum of the same group. */
function groupMinimum(source: Uint8Array, at: number, g: number): number {
  if (g < 4) return source[at + g + 4]! & 63;
  return (source[at + g + 4]! >> 4) | ((source[at + g]! >> 6) << 4);
}

/** d | dmin | 12 bytes of scales | 128 bytes */
export const q4kRow: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 144, t += 256) {
    const d = fromHalf(load16(source, s));
    const dmin = fromHalf(load16(source, s + 2));
    for (let g = 0; g < 8; g++) {
      const step = fround(d * groupScale(source, s + 4, g));
      const low = fround(dmin * groupMinimum(source, s + 4, g));
      const quants = s + 16 + (g >> 1) * 32;
      const shift = 4 * (g & 1);
      for (let i = 0; i < 32; i++)
        target[t + g * 32 + i] = fround(step * ((source[quants + i]! >> shift) & 15)) - low;
    }
  }
};

/** d | dmin | 12 bytes of scales | 32 of fifth bits | 128 bytes */
export const q5kRow: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 176, t += 256) {
    const d = fromHalf(load16(source, s));
    const dmin = fromHalf(load16(source, s + 2));
    for (let g = 0; g < 8; g++) {
      const step = fround(d * groupScale(source, s + 4, g));
      const low = fround(dmin * groupMinimum(source, s + 4, g));
      const quants = s + 48 + (g >> 1) * 32;
      const shift = 4 * (g & 1);
      for (let i = 0; i < 32; i++) {
        const q = ((source[quants + i]! >> shift) & 15) | (((source[s + 16 + i]! >> g) & 1) << 4);
        target[t + g * 32 + i] = fround(step * q) - low;
      }
    }
  }
};

/** 128 bytes of low bits | 64 of high | 16 signed scales | d */
export const q6kRow: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 210, t += 256) {
    const d = fromHalf(load16(source, s + 208));
    for (let i = 0; i < 256; i++) {
      const half = i >> 7;
      const quarter = (i >> 5) & 3;
      const low = (source[s + half * 64 + (i & 63)]! >> (4 * (quarter >> 1))) & 15;
      const top = (source[s + 128 + half * 32 + (i & 31)]! >> (2 * quarter)) & 3;
      const scale = fround(d * ((source[s + 192 + (i >> 4)]! << 24) >> 24));
      target[t + i] = scale * ((low | (top << 4)) - 32);
    }
  }
};
