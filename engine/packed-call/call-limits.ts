import type { ColumnCounts } from '../../base/columns.js';
import type { PACKED_COLUMNS } from '../batch/packed-batch.js';
import type { CANDIDATE_COLUMNS, OUTPUT_COLUMNS, SAMPLING_COLUMNS } from '../decoding/sampling-batch.js';

/** The greatest size of a batch. */
export interface PackedLimits {
  tokens: number;
  sequences: number;
  logitRows: number;
  /** Entries of each sequence's block table. */
  maxBlocksPerSequence: number;
  /** The most that a batch is the first to write to. */
  newBlocks: number;
}

/** The greatest size of a call of the executor. */
export interface CallLimits extends PackedLimits {
  /** Most tokens that all rows' histories hold together where there are no drafts. */
  history: number;
}

/** Tokens that a row bans, and most probable ones that it asks for, before their columns have to grow. */
const BANNED_PER_ROW = 4;
const TOP_PER_ROW = 20;

/** Entries of a batch's columns. */
export function packedCounts(limits: PackedLimits): ColumnCounts<typeof PACKED_COLUMNS> {
  return {
    token: limits.tokens,
    sequence: limits.sequences,
    tableEntry: limits.sequences * limits.maxBlocksPerSequence,
    logitRow: limits.logitRows,
    newBlock: limits.newBlocks,
  };
}

/** Entries of the columns of sampling parameters. */
export function samplingCounts(
  rows: number,
  history: number,
): ColumnCounts<typeof SAMPLING_COLUMNS & typeof CANDIDATE_COLUMNS> {
  return { row: rows, banned: BANNED_PER_ROW * rows, history };
}

/** Entries of the columns of what sampling gives back. */
export function outputCounts(rows: number): ColumnCounts<typeof OUTPUT_COLUMNS> {
  return { row: rows, topEntry: TOP_PER_ROW * rows };
}
