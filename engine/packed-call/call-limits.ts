import type { ColumnCounts } from '../../base/columns.js';
import type { PACKED_COLUMNS } from './packed-batch.js';
import type { CANDIDATE_COLUMNS, OUTPUT_COLUMNS, SAMPLING_COLUMNS } from './sampling-batch.js';

/** Most tokens, sequences or rows of logits in a step of any executor. */
export const MAX_STEP_ROWS = 2 ** 20 - 1;

/** Greatest size of a batch. */
export interface PackedLimits {
  tokens: number;
  sequences: number;
  logitRows: number;
  /** Entries in each sequence's block table. */
  maxBlocksPerSequence: number;
  /** Most blocks that a batch may be the first to write to. */
  newBlocks: number;
  /** Most snapshots of states; absent: the network has no states. */
  snapshots?: number;
}

/** Greatest size of a call of the executor. */
export interface CallLimits extends PackedLimits {
  /** Most tokens that all rows' histories hold together without drafts. */
  history: number;
}

/** Banned tokens, and most probable tokens, that a row has room for before their columns have to grow. */
const BANNED_PER_ROW = 4;
const TOP_PER_ROW = 20;

/** Number of entries in a batch's columns. */
export function packedCounts(limits: PackedLimits): ColumnCounts<typeof PACKED_COLUMNS> {
  return {
    token: limits.tokens,
    sequence: limits.sequences,
    tableEntry: limits.sequences * limits.maxBlocksPerSequence,
    logitRow: limits.logitRows,
    newBlock: limits.newBlocks,
    snapshot: limits.snapshots ?? 0,
  };
}

/** Number of entries in the columns of sampling parameters. */
export function samplingCounts(
  rows: number,
  history: number,
): ColumnCounts<typeof SAMPLING_COLUMNS & typeof CANDIDATE_COLUMNS> {
  return { row: rows, banned: BANNED_PER_ROW * rows, history };
}

/** Number of entries in the columns of sampling's results. */
export function outputCounts(rows: number): ColumnCounts<typeof OUTPUT_COLUMNS> {
  return { row: rows, topEntry: TOP_PER_ROW * rows };
}
