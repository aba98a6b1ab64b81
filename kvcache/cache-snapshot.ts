import type { PrefixNode } from './prefix-tree.js';

/** A request's tables. */
export interface SequenceSnapshot {
  requestId: bigint;
  length: number;
  blocks: ArrayLike<number>;
  /** Tables of the sequences behind the first; absent: there is one sequence. */
  further?: readonly ArrayLike<number>[];
}

/** The block manager's state as plain data. */
export interface KvCacheSnapshot {
  tokensPerBlock: number;
  /** Entries of the longest table. */
  maxBlocks: number;
  /** Free blocks of the primary pool, and of the secondary one. */
  free: ArrayLike<number>;
  secondaryFree: ArrayLike<number>;
  /** Blocks of the secondary pool, numbered behind those of the primary one. */
  numSecondaryBlocks: number;
  /** One entry for each block of the primary pool. */
  referenceCounts: ArrayLike<number>;
  sequences: Iterable<SequenceSnapshot>;
  roots: Iterable<PrefixNode>;
  /** Entry of each block that is in the tree. */
  nodes: readonly (PrefixNode | undefined)[];
  /** Primary blocks of the tree without a reference. */
  numCached: number;
  isEvictable(block: number): boolean;
}
