import { fromHalf, load16, store16, toHalf } from '../../../../base/half.js';
import type { TensorPrecision } from '../../../directory/engine-directory.js';
import { q3kQuant, q3kScale } from './k-quants.js';
import { tq1Quant, tq2Quant } from './ternary-types.js';

/** Converts blocks of a checkpoint into blocks of the engine of as many elements without changing a value. */
export type ExactConversion = (source: Uint8Array, blocks: number, target: Uint8Array) => void;

const copyBlocks =
  (blockBytes: number): ExactConversion =>
  (source, blocks, target) =>
    target.set(source.subarray(0, blocks * blockBytes));

/** Converts d * (q - 8) to int4 as d * q + (-8 d); eight times a half is a half, unless it is beyond all weights. */
const q4_0ToInt4: ExactConversion = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 18, t += 20) {
    const half = load16(source, s);
    store16(target, t, half);
    store16(target, t + 2, toHalf(-8 * fromHalf(half)));
    for (let i = 0; i < 16; i++) target[t + 4 + i] = source[s + 2 + i]!;
  }
};

const q4_0ToInt8: ExactConversion = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 18, t += 34) {
    store16(target, t, load16(source, s));
    for (let i = 0; i < 16; i++) {
      const byte = source[s + 2 + i]!;
      target[t + 2 + i] = (byte & 15) - 8;
      target[t + 18 + i] = (byte >> 4) - 8;
    }
  }
};

const q5_0ToInt8: ExactConversion = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 22, t += 34) {
    store16(target, t, load16(source, s));
    for (let i = 0; i < 32; i++) {
      const low = i < 16 ? source[s + 6 + i]! & 15 : source[s + 6 + i - 16]! >> 4;
      const high = (source[s + 2 + (i >> 3)]! >> (i & 7)) & 1;
      target[t + 2 + i] = (low | (high << 4)) - 16;
    }
  }
};

/** Converts Q3_K, d * scale * q with q in -4 .. 3 and groups of 16, to q6_k, whose groups and scales are of the same kind. */
const q3kToQ6k: ExactConversion = (source, blocks, target) => {
  for (let block = 0, s = 0, t = 0; block < blocks; block++, s += 110, t += 210) {
    target.fill(0, t, t + 210);
    store16(target, t + 208, load16(source, s + 108));
    for (let g = 0; g < 16; g++) target[t + 192 + g] = q3kScale(source, s, g);
    for (let i = 0; i < 256; i++) {
      const quant = q3kQuant(source, s, i) + 32;
      const half = i >> 7;
      const quarter = (i >> 5) & 3;
      target[t + half * 64 + (i & 63)]! |= (quant & 15) << (4 * (quarter >> 1));
      target[t + 128 + half * 32 + (i & 31)]! |= (quant >> 4) << (2 * quarter);
    }
  }
};

/** Converts d * (q - 1) to eight blocks of int4, d * q + (-d) each. */
const ternaryToInt4 =
  (blockBytes: number, quantOf: (source: Uint8Array, s: number, i: number) => number): ExactConversion =>
  (source, blocks, target) => {
    for (let block = 0, s = 0; block < blocks; block++, s += blockBytes) {
      const d = load16(source, s + blockBytes - 2);
      for (let g = 0; g < 8; g++) {
        const t = (8 * block + g) * 20;
        store16(target, t, d);
        store16(target, t + 2, d ^ 0x8000);
        for (let i = 0; i < 16; i++) {
          const at = 32 * g + i;
          target[t + 4 + i] = quantOf(source, s, at) | (quantOf(source, s, at + 16) << 4);
        }
      }
    }
  };

/** The layouts of int8 and int4 are those of Q8_0 and Q4_1; formats that are only kept are stored as they are. */
const CONVERSIONS: Readonly<Record<string, ExactConversion>> = {
  'Q8_0 int8': copyBlocks(34),
  'Q4_0 int8': q4_0ToInt8,
  'Q5_0 int8': q5_0ToInt8,
  'Q4_1 int4': copyBlocks(20),
  'Q4_0 int4': q4_0ToInt4,
  'TQ1_0 int4': ternaryToInt4(54, tq1Quant),
  'TQ2_0 int4': ternaryToInt4(66, tq2Quant),
  'Q4_K q4_k': copyBlocks(144),
  'Q5_K q5_k': copyBlocks(176),
  'Q6_K q6_k': copyBlocks(210),
  'Q3_K q6_k': q3kToQ6k,
  'Q5_0 q5_0': copyBlocks(22),
  'Q5_1 q5_1': copyBlocks(24),
  'IQ4_NL iq4_nl': copyBlocks(18),
  'IQ4_XS iq4_xs': copyBlocks(136),
  'MXFP4 mxfp4': copyBlocks(17),
};

/** Conversion from a storage type to the target's without loss; undefined if there is none. */
export function exactConversion(source: string, target: TensorPrecision): ExactConversion | undefined {
  return CONVERSIONS[`${source} ${target}`];
}
