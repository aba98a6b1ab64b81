import { fromHalf, load16 } from '../../../../base/half.js';
import type { BlockReader } from './plain-types.js';

// Formats whose quants of 4 bits are places in a table. A group of 32 has 16 bytes: the low nibbles are elements 0..15, the high
// ones 16..31.

const IQ4_VALUES = Int8Array.of(
  ...[-127, -104, -83, -65, -49, -35, -22, -10],
  ...[1, 13, 25, 38, 53, 69, 89, 113],
);
/** Twice the values of E2M1. */
const E2M1_VALUES = Int8Array.of(...[0, 1, 2, 3, 4, 6, 8, 12], ...[0, -1, -2, -3, -4, -6, -8, -12]);

/** Writes the values of the group whose 16 bytes begin at `at`. */
function readGroup(
  table: Int8Array,
  scale: number,
  source: Uint8Array,
  at: number,
  target: Float32Array,
  to: number,
): void {
  for (let i = 0; i < 16; i++) {
    const byte = source[at + i]!;
    target[to + i] = scale * table[byte & 15]!;
    target[to + i + 16] = scale * table[byte >> 4]!;
  }
}

/** f16 scale | 16 bytes */
export const iq4nlRow: BlockReader = (source, blocks, target) => {
  for (let block = 0; block < blocks; block++) {
    const s = 18 * block;
    readGroup(IQ4_VALUES, fromHalf(load16(source, s)), source, s + 2, target, 32 * block);
  }
};

/** d | 2 bytes of upper bits of scales | 4 bytes of lower ones | 8 groups of 16 bytes */
export const iq4xsRow: BlockReader = (source, blocks, target) => {
  for (let block = 0; block < blocks; block++) {
    const s = 136 * block;
    const d = fromHalf(load16(source, s));
    for (let g = 0; g < 8; g++) {
      const low = (source[s + 4 + (g >> 1)]! >> (4 * (g & 1))) & 15;
      const high = (source[s + 2 + (g >> 2)]! >> (2 * (g & 3))) & 3;
      const scale = Math.fround(d * ((low | (high << 4)) - 32));
      readGroup(IQ4_VALUES, scale, source, s + 8 + 16 * g, target, 256 * block + 32 * g);
    }
  }
};

/** exponent | 16 bytes. The values are twice E2M1's, so the scale is half of 2 ** (exponent - 127). */
export const mxfp4Row: BlockReader = (source, blocks, target) => {
  for (let block = 0; block < blocks; block++) {
    const s = 17 * block;
    readGroup(E2M1_VALUES, 2 ** (source[s]! - 128), source, s + 1, target, 32 * block);
  }
};

/** Half of a scale of FP8 (E4M3 without a sign). The code of NaN is 0, as GGML has it. */
function e4m3Half(code: number): number {
  const exponent = (code >> 3) & 15;
  const fraction = code & 7;
  if (code === 0x7f) return 0;
  return exponent === 0 ? fraction * 2 ** -10 : (8 + fraction) * 2 ** (exponent - 11);
}

/** 4 scales | 4 groups of 16: the low nibbles of 8 bytes are elements 0..7, the high ones 8..15. */
export const nvfp4Row: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 36, t += 64) {
    for (let i = 0; i < 32; i++) {
      const scale = e4m3Half(source[s + (i >> 3)]!);
      const byte = source[s + 4 + i]!;
      const to = t + 16 * (i >> 3) + (i & 7);
      target[to] = scale * E2M1_VALUES[byte & 15]!;
      target[to + 8] = scale * E2M1_VALUES[byte >> 4]!;
    }
  }
};
