import { fromHalf, load16 } from '../../../../base/half.js';
import {
  IQ1_S_ROWS,
  IQ1_S_VALUES,
  IQ2_S_ROWS,
  IQ2_S_VALUES,
  IQ2_XS_ROWS,
  IQ2_XS_VALUES,
  IQ2_XXS_ROWS,
  IQ2_XXS_VALUES,
  IQ3_S_ROWS,
  IQ3_S_VALUES,
  IQ3_XXS_ROWS,
  IQ3_XXS_VALUES,
} from './grids.js';
import type { BlockReader } from './plain-types.js';

// Formats with blocks of 256 whose quants are rows of a grid: an index stands for 8 values, or 4. Blocks have 8 groups of
// 32 values, and a sign of one bit for each.
//
//   group of 32   [ row 8 | row 8 | row 8 | row 8 ]      IQ1, IQ2
//                 [ row 4 | row 4 | ... 8 rows ... ]     IQ3

const { fround } = Math;

/** Values of a grid's rows, one row after the other. */
function gridOf(text: string, values: readonly number[], width: 4 | 8): Int8Array {
  const bytes = Buffer.from(text, 'base64');
  const bits = 16 / width;
  return Int8Array.from({ length: (bytes.length / 2) * width }, (_, i) => {
    const row = load16(bytes, 2 * Math.floor(i / width));
    return values[(row >> (bits * (i % width))) & ((1 << bits) - 1)]!;
  });
}

const IQ2_XXS = gridOf(IQ2_XXS_ROWS, IQ2_XXS_VALUES, 8);
const IQ2_XS = gridOf(IQ2_XS_ROWS, IQ2_XS_VALUES, 8);
const IQ2_S = gridOf(IQ2_S_ROWS, IQ2_S_VALUES, 8);
const IQ3_XXS = gridOf(IQ3_XXS_ROWS, IQ3_XXS_VALUES, 4);
const IQ3_S = gridOf(IQ3_S_ROWS, IQ3_S_VALUES, 4);
const IQ1 = gridOf(IQ1_S_ROWS, IQ1_S_VALUES, 8);

/** Eight signs of seven bits: the last one makes their number even. */
function evenSigns(seven: number): number {
  let parity = seven;
  for (const shift of [4, 2, 1]) parity ^= parity >> shift;
  return seven | ((parity & 1) << 7);
}
const EVEN_SIGNS = Uint8Array.from({ length: 128 }, (_, seven) => evenSigns(seven));

const load32 = (bytes: Uint8Array, at: number) => (load16(bytes, at) | (load16(bytes, at + 2) << 16)) >>> 0;

/** Writes a row of a grid, each value times the scale and with its sign, which is negative where its bit is set. */
function writeRow(
  grid: Int8Array,
  [row, width]: readonly [row: number, width: 4 | 8],
  scale: number,
  signs: number,
  target: Float32Array,
  to: number,
): void {
  for (let i = 0; i < width; i++) {
    const value = scale * grid[row * width + i]!;
    target[to + i] = (signs >> i) & 1 ? -value : value;
  }
}

/** d * (0.5 + scale) * factor, rounded as float32 after each step. */
const halfStep = (d: number, scale: number, factor: number) => fround(fround(d * (0.5 + scale)) * factor);

/** d | 8 groups: 4 bytes of rows, 4 bytes of 4 x 7 signs and a scale of 4 bits */
export const iq2xxsRow: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 66, t += 256) {
    const d = fromHalf(load16(source, s));
    for (let g = 0; g < 8; g++) {
      const at = s + 2 + 8 * g;
      const packed = load32(source, at + 4);
      const scale = halfStep(d, packed >>> 28, 0.25);
      for (let l = 0; l < 4; l++) {
        const signs = EVEN_SIGNS[(packed >>> (7 * l)) & 127]!;
        writeRow(IQ2_XXS, [source[at + l]!, 8], scale, signs, target, t + 32 * g + 8 * l);
      }
    }
  }
};

/** d | 32 times 9 bits of a row and 7 of signs | 8 bytes of scales of 4 bits, one for 16 values */
export const iq2xsRow: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 74, t += 256) {
    const d = fromHalf(load16(source, s));
    for (let l = 0; l < 32; l++) {
      const packed = load16(source, s + 2 + 2 * l);
      const scale = halfStep(d, (source[s + 66 + (l >> 2)]! >> (4 * ((l >> 1) & 1))) & 15, 0.25);
      writeRow(IQ2_XS, [packed & 511, 8], scale, EVEN_SIGNS[packed >> 9]!, target, t + 8 * l);
    }
  }
};

/** d | 32 bytes of rows | 32 bytes of signs | 8 bytes of 4 x 2 high bits of rows | 8 bytes of scales as above */
export const iq2sRow: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 82, t += 256) {
    const d = fromHalf(load16(source, s));
    for (let l = 0; l < 32; l++) {
      const high = (source[s + 66 + (l >> 2)]! >> (2 * (l & 3))) & 3;
      const scale = halfStep(d, (source[s + 74 + (l >> 2)]! >> (4 * ((l >> 1) & 1))) & 15, 0.25);
      const row = source[s + 2 + l]! | (high << 8);
      writeRow(IQ2_S, [row, 8], scale, source[s + 34 + l]!, target, t + 8 * l);
    }
  }
};

/** d | 64 bytes of rows | 8 times 4 x 7 signs and a scale of 4 bits */
export const iq3xxsRow: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 98, t += 256) {
    const d = fromHalf(load16(source, s));
    for (let l = 0; l < 64; l++) {
      const packed = load32(source, s + 66 + 4 * (l >> 3));
      const signs = EVEN_SIGNS[(packed >>> (7 * ((l >> 1) & 3))) & 127]! >> (4 * (l & 1));
      const scale = halfStep(d, packed >>> 28, 0.5);
      writeRow(IQ3_XXS, [source[s + 2 + l]!, 4], scale, signs, target, t + 4 * l);
    }
  }
};

/** d | 64 bytes of rows | 8 bytes of high bits of rows | 32 bytes of signs | 4 bytes of scales of 4 bits, one for 32 values */
export const iq3sRow: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 110, t += 256) {
    const d = fromHalf(load16(source, s));
    for (let l = 0; l < 64; l++) {
      const high = (source[s + 66 + (l >> 3)]! >> (l & 7)) & 1;
      const signs = source[s + 74 + (l >> 1)]! >> (4 * (l & 1));
      const scale = fround(d * (1 + 2 * ((source[s + 106 + (l >> 4)]! >> (4 * ((l >> 3) & 1))) & 15)));
      writeRow(IQ3_S, [source[s + 2 + l]! | (high << 8), 4], scale, signs, target, t + 4 * l);
    }
  }
};

/** A row of -1, 0 and 1, moved by an eighth up or, where `isDown`, down. */
function writeTernary(row: number, scale: number, isDown: boolean, target: Float32Array, to: number): void {
  const delta = isDown ? -0.125 : 0.125;
  for (let i = 0; i < 8; i++) target[to + i] = scale * (IQ1[row * 8 + i]! + delta);
}

/** d | 32 bytes of rows | 8 times 4 x 3 high bits of rows, a scale of 3 bits and the direction */
export const iq1sRow: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 50, t += 256) {
    const d = fromHalf(load16(source, s));
    for (let l = 0; l < 32; l++) {
      const packed = load16(source, s + 34 + 2 * (l >> 2));
      const scale = fround(d * (2 * ((packed >> 12) & 7) + 1));
      const row = source[s + 2 + l]! | (((packed >> (3 * (l & 3))) & 7) << 8);
      writeTernary(row, scale, packed >= 0x8000, target, t + 8 * l);
    }
  }
};

/** 32 bytes of rows | 16 bytes of 2 x 3 high bits and a direction | 4 times 4 x 3 bits of scales and 4 bits of d */
export const iq1mRow: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 56, t += 256) {
    const scales = [0, 1, 2, 3].map((i) => load16(source, s + 48 + 2 * i));
    const d = fromHalf(scales.reduce((bits, packed, i) => bits | ((packed >> 12) << (4 * i)), 0));
    for (let l = 0; l < 32; l++) {
      const high = source[s + 32 + (l >> 1)]! >> (4 * (l & 1));
      const scale = fround(d * (2 * ((scales[l >> 3]! >> (3 * ((l >> 1) & 3))) & 7) + 1));
      const row = source[s + l]! | ((high & 7) << 8);
      writeTernary(row, scale, (high & 8) !== 0, target, t + 8 * l);
    }
  }
};
