import { fromHalf, load16 } from '../../../../base/half.js';
import type { BlockReader } from './plain-types.js';

// Formats of three values, -d, 0 and d, in blocks of 256.

/** Quant of element i of the block of TQ1_0 at `s`, 0 .. 2. A byte has five of them as digits of base 3, of 256ths. */
export function tq1Quant(source: Uint8Array, s: number, i: number): number {
  const [first, bytes, at] = i < 160 ? [0, 32, i] : i < 240 ? [32, 16, i - 160] : [48, 4, i - 240];
  const power = 3 ** Math.floor(at / bytes);
  return (((source[s + first + (at % bytes)]! * power) & 255) * 3) >> 8;
}

/** Quant of element i of the block of TQ2_0 at `s`, 0 .. 3, of which 3 is not used. */
export function tq2Quant(source: Uint8Array, s: number, i: number): number {
  return (source[s + (i >> 7) * 32 + (i & 31)]! >> (2 * ((i >> 5) & 3))) & 3;
}

/** 48 bytes of five digits | 4 bytes of four | d */
export const tq1_0Row: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 54, t += 256) {
    const d = fromHalf(load16(source, s + 52));
    for (let i = 0; i < 256; i++) target[t + i] = d * (tq1Quant(source, s, i) - 1);
  }
};

/** 64 bytes | d */
export const tq2_0Row: BlockReader = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 66, t += 256) {
    const d = fromHalf(load16(source, s + 64));
    for (let i = 0; i < 256; i++) target[t + i] = d * (tq2Quant(source, s, i) - 1);
  }
};
