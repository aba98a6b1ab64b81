/** Block counts that statistics report, and the counters behind them. */
export interface KvCacheStats {
  maxBlocks: number;
  freeBlocks: number;
  usedBlocks: number;
  tokensPerBlock: number;
  /** Number of blocks put into tables since the start. */
  allocTotalBlocks: number;
  /** Number of allocated blocks that were free or evicted: neither shared nor taken over with their content. */
  allocNewBlocks: number;
  /** Sums of the sequences' ReuseCounts since the start. */
  reusedBlocks: number;
  missedBlocks: number;
  /** reusedBlocks / (reusedBlocks + missedBlocks), 0 before the first block was looked for. */
  cacheHitRate: number;
  /** Number of blocks in the secondary pool, and of those that hold something; 0 without such a pool. */
  secondaryMaxBlocks: number;
  secondaryUsedBlocks: number;
  /** Number of blocks moved to the secondary pool, and back from it, since the start. */
  swappedOutBlocks: number;
  swappedInBlocks: number;
  /** null: the model has no states. */
  states: StateStats | null;
  /** Blocks in files; null: there is no folder for them. */
  disk: DiskStats | null;
}

/** Blocks kept on a disk. Files and bytes are those of the folder, whichever engine they are of; all else is counted since the start. */
export interface DiskStats {
  files: number;
  bytes: number;
  maxBytes: number;
  /** Full blocks of prompts that were brought from the disk, and those that neither the pools nor the disk had. */
  hits: number;
  misses: number;
  readBytes: number;
  writtenBlocks: number;
  /** Files that were damaged, and removed. */
  damaged: number;
  /** Reads and writes that failed. */
  errors: number;
}

/** States of sequences, which are stored outside their blocks. */
export interface StateStats {
  /** Slots of sequences that run, and those that are held. */
  slots: number;
  usedSlots: number;
  /** Slots for snapshots, and those that are kept for later prompts. */
  snapshots: number;
  keptSnapshots: number;
  /** Prompts since the start that began with a snapshot, and those that found cached blocks and had to compute some of them for want of one. */
  hits: number;
  lost: number;
}

/** Current state of the pools. */
export interface PoolState {
  maxBlocks: number;
  freeBlocks: number;
  tokensPerBlock: number;
  secondary: { maxBlocks: number; usedBlocks: number; swappedOut: number; swappedIn: number };
  states: StateStats | null;
}

/** Counters since the start; the rest of KvCacheStats is the pool's current state. */
export class KvCacheCounters {
  #allocTotalBlocks = 0;
  #allocNewBlocks = 0;
  #reusedBlocks = 0;
  #missedBlocks = 0;

  /** Counts blocks that were put into tables with the content that they had. */
  addKept(blocks: number): void {
    this.#allocTotalBlocks += blocks;
  }

  /** Counts blocks that were put into tables as new. */
  addNew(blocks: number): void {
    this.#allocTotalBlocks += blocks;
    this.#allocNewBlocks += blocks;
  }

  /** Counts a sequence's search for its full blocks. */
  addLookUp({ reusedBlocks, missedBlocks }: { reusedBlocks: number; missedBlocks: number }): void {
    this.#reusedBlocks += reusedBlocks;
    this.#missedBlocks += missedBlocks;
  }

  stats({ maxBlocks, freeBlocks, tokensPerBlock, secondary, states }: PoolState): KvCacheStats {
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
      states,
      disk: null,
    };
  }
}
