import type { PackedBatch } from '../../packed-call/packed-batch.js';

/** How a sequence's rows of a batch change its states; see engine/executors/native/executor/state_log.h, which draws it. */
export interface StateRowCounts {
  rows: number;
  /** Logged rows in front of them, which are computed again. */
  replayed: number;
  /** Whether the replayed rows are certain. */
  keeps: boolean;
  /** The first rows, after which the states are kept. */
  certain: number;
  /** Place in the log of the first row that is a draft. */
  firstLogged: number;
  /** With zeros, whatever the slot holds. */
  begins: boolean;
}

export function stateRowCounts(batch: PackedBatch, sequence: number): StateRowCounts {
  const rows = batch.queryStart[sequence + 1]! - batch.queryStart[sequence]!;
  const replayed = batch.stateReplays[sequence]!;
  const drafts = batch.stateDrafts[sequence]!;
  const keeps = drafts <= rows;
  return {
    rows,
    replayed,
    keeps,
    certain: keeps ? rows - drafts : 0,
    firstLogged: keeps ? 0 : replayed,
    begins: batch.contextLength[sequence] === rows,
  };
}
