import type { BlockCache } from './block-cache.js';
import type { BlockTable } from './block-table.js';
import type { StoredBlock } from './cache-events.js';
import type { KvCacheCounters } from './kv-cache-stats.js';
import type { MemoryChanges } from './memory-changes.js';
import type { PrefixMatch, PrefixNode } from './prefix-tree.js';
import { checkRetention, type Retention, retentionAt } from './retention.js';

/** What a sequence may share with others. */
export interface SharedPrefix {
  /** The prompt; may be longer than promptLength. */
  tokens: Int32Array;
  /** Sequences of different salts share nothing; 0n where there is none. */
  salt: bigint;
  retention?: Retention;
}

/**
 * What the sequence found in the cache. The last prompt token is always computed, so of a prompt of n tokens
 * floor((n - 1) / tokensPerBlock) full blocks can be found: each of them counts as reused or as missed.
 */
export interface ReuseCounts {
  /** Tokens whose keys and values were there, those of a part of a block included. */
  reusedTokens: number;
  /** Full blocks shared. */
  reusedBlocks: number;
  missedBlocks: number;
}

export interface SharingOptions {
  tokensPerBlock: number;
  /** Default true. */
  enablePartialReuse?: boolean;
  /** Default true. */
  copyOnPartialReuse?: boolean;
}

/** What of a sequence must be known to keep its blocks. */
export interface Storable {
  table: BlockTable;
  promptLength: number;
  shared: Omit<SharedPrefix, 'tokens'>;
}

const NOTHING_FOUND: PrefixMatch = { nodes: [], partial: null, partialLength: 0 };

/** How sequences find the beginnings that others have left in the tree, and leave theirs. */
export class PrefixSharing {
  readonly #tokensPerBlock: number;
  readonly #enablePartialReuse: boolean;
  readonly #copyOnPartialReuse: boolean;
  readonly #cache: BlockCache;
  readonly #changes: MemoryChanges;
  readonly #counters: KvCacheCounters;

  constructor(options: SharingOptions, cache: BlockCache, changes: MemoryChanges, counters: KvCacheCounters) {
    this.#tokensPerBlock = options.tokensPerBlock;
    this.#enablePartialReuse = options.enablePartialReuse ?? true;
    this.#copyOnPartialReuse = options.copyOnPartialReuse ?? true;
    this.#cache = cache;
    this.#changes = changes;
    this.#counters = counters;
  }

  /** What the cache has of the prompt but its last token, as far as the options allow to use it. */
  find(shared: SharedPrefix | null, promptLength: number): PrefixMatch {
    if (shared === null) return NOTHING_FOUND;
    if (shared.retention) checkRetention(shared.retention);
    if (shared.tokens.length < promptLength) {
      throw new RangeError(
        `A prompt of ${promptLength} tokens is to be found; ${shared.tokens.length} are given.`,
      );
    }
    const match = this.#cache.tree.match(shared.salt, shared.tokens, promptLength - 1);
    const { partial } = match;
    const usable =
      partial !== null &&
      this.#enablePartialReuse &&
      (this.#copyOnPartialReuse || this.#cache.isClaimable(partial));
    return usable ? match : { nodes: match.nodes, partial: null, partialLength: 0 };
  }

  /** How many blocks of the match take nothing from what can be had, since somebody holds them. */
  numHeld({ nodes }: PrefixMatch): number {
    return nodes.reduce((sum, { block }) => sum + (this.#cache.isHeld(block) ? 1 : 0), 0);
  }

  /** Puts what was found into the empty table of a sequence with this prompt, for which there is room. */
  take(
    table: BlockTable,
    { nodes, partial, partialLength }: PrefixMatch,
    promptLength: number,
    shared: SharedPrefix | null,
  ): ReuseCounts {
    for (const node of nodes) {
      this.#cache.acquire(node);
      table.append(node.block);
    }
    this.#counters.addKept(nodes.length);
    if (partial !== null) table.append(this.#takePartial(partial));
    const reusedTokens = nodes.length * this.#tokensPerBlock + partialLength;
    const reusedBlocks = nodes.length;
    const missedBlocks = shared ? Math.floor((promptLength - 1) / this.#tokensPerBlock) - reusedBlocks : 0;
    this.#counters.addLookUp({ reusedBlocks, missedBlocks });
    return { reusedTokens, reusedBlocks, missedBlocks };
  }

  /** Keeps the full blocks of the sequence's first `numWritten` tokens: see KvCacheManager.store. */
  store({ table, shared, promptLength }: Storable, tokens: Int32Array, numWritten: number): void {
    const { tree, events } = this.#cache;
    const size = this.#tokensPerBlock;
    const stored: StoredBlock[] = [];
    let parentHash: number | null = null;
    let node = tree.root(shared.salt);
    for (let start = 0; start + size <= numWritten; start += size) {
      const block = table.blocks[start / size]!;
      const retention = shared.retention ? retentionAt(shared.retention, start, promptLength) : null;
      const known = tree.child(node, tokens, start);
      if (known) {
        if (known.block !== block) this.#exchange(table, start / size, known);
        if (retention) this.#cache.retain(known, retention);
        node = known;
        continue;
      }
      if (stored.length === 0) parentHash = node.parent === null ? null : node.hash;
      this.#changes.keep(block);
      node = this.#cache.insert(node, tokens, start, block, retention);
      if (!events.isOn) continue;
      const { hash: blockHash, priority } = node;
      stored.push({ blockHash, tokens: Array.from(node.tokens), loraId: null, cacheLevel: 0, priority });
    }
    if (stored.length > 0) events.add({ type: 'stored', parentHash, blocks: stored });
  }

  /** A block of the sequence's own with the content of `partial`: the very block if it is an unused leaf, or a copy. */
  #takePartial(partial: PrefixNode): number {
    if (this.#cache.isClaimable(partial)) {
      this.#counters.addKept(1);
      return this.#cache.claim(partial);
    }
    const block = this.#cache.take();
    this.#counters.addNew(1);
    this.#changes.copy(partial.block, block);
    return block;
  }

  #exchange(table: BlockTable, index: number, node: PrefixNode): void {
    const own = table.blocks[index]!;
    this.#cache.acquire(node);
    table.replace(index, node.block);
    this.#cache.release(own);
  }
}
