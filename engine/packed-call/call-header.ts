import type { MemoryRegion } from '../../base/columns.js';

/** Where the header of a call has its counts. */
export const CALL_HEADER = {
  numTokens: 0,
  numSequences: 1,
  numLogitRows: 2,
  numNewBlocks: 3,
  /** Rows of sampling parameters. */
  numRows: 4,
} as const;

export const HEADER_LENGTH = Object.keys(CALL_HEADER).length;

/** Of what has memory of its own. */
export function newHeader(): Int32Array {
  return new Int32Array(HEADER_LENGTH);
}

/** Where a part of a call has its arrays and its counts. */
export interface CallPlace {
  readonly header: Int32Array;
  readonly region: MemoryRegion;
}
