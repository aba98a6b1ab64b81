/** The block counts that statistics report, and what they come from. */
export interface KvCacheStats {
  maxBlocks: number;
  freeBlocks: number;
  usedBlocks: number;
  tokensPerBlock: number;
  /** Blocks put into tables since the start. */
  allocTotalBlocks: number;
  /** Allocated blocks that were free or evicted: neither shared nor taken over with their content. */
  allocNewBlocks: number;
  /** Sums of the sequences' ReuseCounts since the start. */
  reusedBlocks: number;
  missedBlocks: number;
  /** reusedBlocks / (reusedBlocks + missedBlocks), 0 before the first. */
  cacheHitRate: number;
  /** Blocks of the secondary pool, and those of them that hold something; 0 without such a pool. */
  secondaryMaxBlocks: number;
  secondaryUsedBlocks: number;
  /** Blocks moved to the secondary pool, and back from it, since the start. */
  swappedOutBlocks: number;
  swappedInBlocks: number;
}

/** What the pools say of themselves. */
export interface PoolState {
  maxBlocks: number;
  freeBlocks: number;
  tokensPerBlock: number;
  secondary: { maxBlocks: number; usedBlocks: number; swappedOut: number; swappedIn: number };
}

/** What is counted from the start on; the rest of KvCacheStats is the pool's state. */
export class KvCacheCounters {
  #allocTotalBlocks = 0;
  #allocNewBlocks = 0;
  #reusedBlocks = 0;
  #missedBlocks = 0;

  /** Blocks were put into tables with the content that they had. */
  addKept(blocks: number): void {
    this.#allocTotalBlocks += blocks;
  }

  /** Blocks were put into tables as new. */
  addNew(blocks: number): void {
    this.#allocTotalBlocks += blocks;
    this.#allocNewBlocks += blocks;
  }

  /** A sequence looked for its full blocks. */
  addLookUp({ reusedBlocks, missedBlocks }: { reusedBlocks: number; missedBlocks: number }): void {
    this.#reusedBlocks += reusedBlocks;
    this.#missedBlocks += missedBlocks;
  }

  stats({ maxBlocks, freeBlocks, tokensPerBlock, secondary }: PoolState): KvCacheStats {
    const lookUps = this.#reusedBlocks + this.#missedBlocks;
    return {
      maxBlocks,
      freeBlocks,
      usedBlocks: maxBlocks - freeBlocks,
      tokensPerBlock,
      allocTotalBlocks: this.#allocTotalBlocks,
      allocNewBlocks: this.#allocNewBlocks,
      reusedBlocks: this.#reusedBlocks,
      missedBlocks: this.#missedBlocks,
      cacheHitRate: lookUps === 0 ? 0 : this.#reusedBlocks / lookUps,
      secondaryMaxBlocks: secondary.maxBlocks,
      secondaryUsedBlocks: secondary.usedBlocks,
      swappedOutBlocks: secondary.swappedOut,
      swappedInBlocks: secondary.swappedIn,
    };
  }
}
