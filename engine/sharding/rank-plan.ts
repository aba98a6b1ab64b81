import type { NetworkPlan, PlanOp, PlanWeight } from '../../network/plan.js';
import type { Share } from './rank-shape.js';

/**
 * The plan of one rank. No sum is split, only outputs are: each product computes the rank's columns, and an `exchange` completes
 * the value where an op reads all of it. So every output is the chain over all of k that it is with one rank.
 *
 *   qkv: own heads | attention: own heads | exchange | output projection: own columns | exchange | norm
 *                  | gate, up: own columns | exchange | down: own columns | exchange | ... | logits: own columns | exchange
 */
export interface RankPlan extends Omit<NetworkPlan, 'ops' | 'weights'> {
  rank: number;
  ranks: number;
  /** Width of the embeddings that requests may bring, also of ranks that look none up. */
  promptRowWidth: number;
  weights: RankWeight[];
  ops: RankOp[];
  /** Value of the network's output; -1: another rank has it. */
  logits: number;
  /** Index of each op in the whole plan; -1: an exchange. */
  origins: number[];
}

/** A weight of a rank. */
export interface RankWeight extends PlanWeight {
  /** The rows of a matrix of the engine, or entries of a vector, that the rank has, in this order; absent: all. */
  part?: WeightPart;
}

export interface WeightPart {
  tensor: string;
  /** Rows of the whole matrix, or entries of the whole vector. */
  of: number;
  slices: Share[];
}

/** Columns of a value that a rank computes. */
export interface ColumnPart extends Share {
  rank: number;
}

/** Ways through a rank's outbox; the readers of each are always the same. */
export const CHANNELS = { stage: 0, nextStage: 1, output: 2 } as const;

export interface ExchangeOp {
  op: 'exchange';
  value: number;
  channel: number;
  /** Who has which columns, ascending. */
  parts: ColumnPart[];
  /** Who gets the columns that it has not. */
  readers: number[];
}

/** An op of a rank; `firstColumn` is the first column of the output that it writes, absent: 0. */
export type RankOp =
  | (PlanOp & {
      firstColumn?: number;
      /** Of softCap and xielu: number of columns. Absent: all. */
      columns?: number;
    })
  | ExchangeOp;
