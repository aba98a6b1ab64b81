import type { PrefixNode } from './prefix-tree.js';

/** Block tables of one request. */
export interface SequenceSnapshot {
  requestId: bigint;
  length: number;
  blocks: ArrayLike<number>;
  /** Tables of the sequences after the first; absent: there is one sequence. */
  further?: readonly ArrayLike<number>[];
}

/** The block manager's state as plain data. */
export interface KvCacheSnapshot {
  tokensPerBlock: number;
  /** Number of entries in the longest table. */
  maxBlocks: number;
  /** Free blocks of the primary pool, and of the secondary one. */
  free: ArrayLike<number>;
  secondaryFree: ArrayLike<number>;
  /** Number of blocks in the secondary pool, numbered after those of the primary one. */
  numSecondaryBlocks: number;
  /** Number of references to each block of the primary pool. */
  referenceCounts: ArrayLike<number>;
  sequences: Iterable<SequenceSnapshot>;
  roots: Iterable<PrefixNode>;
  /** Node of each block that is in the tree, indexed by block. */
  nodes: readonly (PrefixNode | undefined)[];
  /** Number of primary blocks in the tree without a reference. */
  numCached: number;
  isEvictable(block: number): boolean;
}
