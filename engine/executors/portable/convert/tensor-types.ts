import type { KeptPrecision } from '../../../directory/engine-directory.js';
import { iq1mRow, iq1sRow, iq2sRow, iq2xsRow, iq2xxsRow, iq3sRow, iq3xxsRow } from './grid-types.js';
import { q2kRow, q3kRow, q4kRow, q5kRow, q6kRow } from './k-quants.js';
import {
  type BlockReader,
  bf16Row,
  f16Row,
  f32Row,
  q4_0Row,
  q4_1Row,
  q5_0Row,
  q5_1Row,
  q8_0Row,
} from './plain-types.js';
import { tq1_0Row, tq2_0Row } from './ternary-types.js';
import { iq4nlRow, iq4xsRow, mxfp4Row, nvfp4Row } from './value-tables.js';

/** A storage type of checkpoints. Layouts are GGML's, little endian. */
export interface StorageType {
  name: string;
  /** Number of elements in a block; a row holds a whole number of blocks. */
  blockElements: number;
  blockBytes: number;
  toF32: BlockReader;
}

const TYPES: readonly [name: string, blockElements: number, blockBytes: number, toF32: BlockReader][] = [
  ['F32', 1, 4, f32Row],
  ['F16', 1, 2, f16Row],
  ['BF16', 1, 2, bf16Row],
  ['Q4_0', 32, 18, q4_0Row],
  ['Q4_1', 32, 20, q4_1Row],
  ['Q5_0', 32, 22, q5_0Row],
  ['Q5_1', 32, 24, q5_1Row],
  ['Q8_0', 32, 34, q8_0Row],
  ['Q2_K', 256, 84, q2kRow],
  ['Q3_K', 256, 110, q3kRow],
  ['Q4_K', 256, 144, q4kRow],
  ['Q5_K', 256, 176, q5kRow],
  ['Q6_K', 256, 210, q6kRow],
  ['IQ4_NL', 32, 18, iq4nlRow],
  ['IQ4_XS', 256, 136, iq4xsRow],
  ['MXFP4', 32, 17, mxfp4Row],
  ['NVFP4', 64, 36, nvfp4Row],
  ['IQ1_S', 256, 50, iq1sRow],
  ['IQ1_M', 256, 56, iq1mRow],
  ['IQ2_XXS', 256, 66, iq2xxsRow],
  ['IQ2_XS', 256, 74, iq2xsRow],
  ['IQ2_S', 256, 82, iq2sRow],
  ['IQ3_XXS', 256, 98, iq3xxsRow],
  ['IQ3_S', 256, 110, iq3sRow],
  ['TQ1_0', 256, 54, tq1_0Row],
  ['TQ2_0', 256, 66, tq2_0Row],
];

const BY_NAME = new Map<string, StorageType>(
  TYPES.map(([name, blockElements, blockBytes, toF32]) => [name, { name, blockElements, blockBytes, toF32 }]),
);

/** The type of this name; undefined if there is none. */
export const storageTypeOf = (name: string): StorageType | undefined => BY_NAME.get(name);

/** The storage type whose blocks a precision keeps, under the same name. */
export const keptType = (dtype: KeptPrecision): StorageType => BY_NAME.get(dtype.toUpperCase())!;

export const STORAGE_TYPES: readonly StorageType[] = [...BY_NAME.values()];
