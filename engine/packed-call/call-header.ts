import type { MemoryRegion } from '../../base/columns.js';

/** Index of each count in the header of a call. */
export const CALL_HEADER = {
  numTokens: 0,
  numSequences: 1,
  numLogitRows: 2,
  numNewBlocks: 3,
  /** Number of rows of sampling parameters. */
  numRows: 4,
} as const;

export const HEADER_LENGTH = Object.keys(CALL_HEADER).length;

/** A header for arrays that have memory of their own. */
export function newHeader(): Int32Array {
  return new Int32Array(HEADER_LENGTH);
}

/** Places of the arrays and the counts of a part of a call. */
export interface CallPlace {
  readonly header: Int32Array;
  readonly region: MemoryRegion;
}
