import type { TokenSpan } from '../scheduler/tokens/types.js';
import type { BeamTables } from './beam-tables.js';
import type { BlockCache } from './block-cache.js';
import type { BlockTable } from './block-table.js';
import type { StoredBlock } from './cache-events.js';
import type { KvCacheCounters } from './kv-cache-stats.js';
import type { MemoryChanges } from './memory-changes.js';
import type { PrefixMatch, PrefixNode, ReuseKey } from './prefix-tree.js';
import { checkRetention, type Retention, retentionAt } from './retention.js';

/** First tokens of a span that say which one it is: nine ids of 30 bits have all 256 bits of a picture's hash. */
export const TOKENS_OF_A_NAME = 9;

/** Data by which a sequence shares blocks with others. */
export interface SharedPrefix extends ReuseKey {
  /** The prompt; may be longer than promptLength. */
  tokens: Int32Array;
  retention?: Retention;
  /** Spans of the prompt that are found whole or not at all, ascending: pictures, or how they begin. Absent: there are none. */
  spans?: readonly TokenSpan[];
  /** Number of tokens after which other prompts are likely to differ: up to where the last picture ends. Absent: none in particular. */
  forksAt?: number;
}

/**
 * Blocks that the sequence found in the cache. The last prompt token is always computed, so of a prompt of n tokens
 * floor((n - 1) / tokensPerBlock) full blocks can be found: each of them counts as reused or as missed.
 */
export interface ReuseCounts {
  /** Tokens whose keys and values were found, those in a part of a block included. */
  reusedTokens: number;
  /** Full blocks shared. */
  reusedBlocks: number;
  missedBlocks: number;
}

export interface SharingOptions {
  tokensPerBlock: number;
  /** See KvCacheOptions; default true. */
  enablePartialReuse?: boolean;
  /** See KvCacheOptions; default true. */
  copyOnPartialReuse?: boolean;
}

/** Parts of a sequence that are needed to keep its blocks. */
export interface Storable {
  tables: BeamTables;
  promptLength: number;
  shared: Omit<SharedPrefix, 'tokens'>;
}

const NOTHING_FOUND: PrefixMatch = { nodes: [], partial: null, partialLength: 0 };

/** Lets sequences find the beginnings that others have left in the tree, and leave theirs. */
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

  /** Finds cached blocks for the prompt except its last token, as far as the options allow to use them. */
  find(shared: SharedPrefix | null, promptLength: number): PrefixMatch {
    if (shared === null) return NOTHING_FOUND;
    if (shared.retention) checkRetention(shared.retention);
    if (shared.tokens.length < promptLength) {
      throw new RangeError(
        `A prompt of ${promptLength} tokens is to be found; ${shared.tokens.length} are given.`,
      );
    }
    const found = this.#cache.tree.match(shared, shared.tokens, promptLength - 1);
    const match = withoutCutSpans(found, shared.spans ?? [], this.#tokensPerBlock);
    const { partial } = match;
    const usable =
      partial !== null &&
      this.#enablePartialReuse &&
      (this.#copyOnPartialReuse || this.#cache.isUnusedLeaf(partial));
    return usable ? match : { nodes: match.nodes, partial: null, partialLength: 0 };
  }

  /** Number of the match's blocks that are held, so that they take nothing from the available ones. */
  numHeld({ nodes }: PrefixMatch): number {
    return nodes.reduce((sum, node) => sum + (this.#cache.isHeld(node) ? 1 : 0), 0);
  }

  /**
   * Puts the blocks found into the empty table of a sequence that is to have `numBlocks` of them, for which there is
   * room. Blocks of the primary pool come before swapped-out ones, so they are held before anything is evicted.
   */
  take(table: BlockTable, match: PrefixMatch, numBlocks: number): void {
    const { nodes, partial } = match;
    this.#cache.whilePinned(partial ?? nodes.at(-1) ?? null, () => {
      for (const node of nodes) {
        this.#cache.acquire(node);
        table.append(node.block);
      }
      this.#counters.addKept(nodes.length);
      if (partial !== null) table.append(this.#takePartial(partial, numBlocks - nodes.length));
    });
  }

  /** Reuse counts of a match for a prompt of this length; adds them to the counters. */
  count({ nodes, partialLength }: PrefixMatch, promptLength: number): ReuseCounts {
    const reusedTokens = nodes.length * this.#tokensPerBlock + partialLength;
    const reusedBlocks = nodes.length;
    const missedBlocks = Math.floor((promptLength - 1) / this.#tokensPerBlock) - reusedBlocks;
    this.#counters.addLookUp({ reusedBlocks, missedBlocks });
    return { reusedTokens, reusedBlocks, missedBlocks };
  }

  /**
   * Keeps the full blocks of the sequence's first `numWritten` tokens: see KvCacheManager.store. A block that ends in the name of a span
   * is kept with the next one alone, which has the rest of the name: by its own tokens it might be another span's.
   * @returns their nodes
   */
  store({ tables, shared, promptLength }: Storable, tokens: Int32Array, numWritten: number): PrefixNode[] {
    const { tree, events } = this.#cache;
    const size = this.#tokensPerBlock;
    const stored: StoredBlock[] = [];
    let parentHash: number | null = null;
    const { loraId = null, salt: cacheSalt } = shared;
    let node = tree.root(shared);
    const nodes: PrefixNode[] = [];
    for (let start = 0; start + size <= numWritten; start += size) {
      const block = tables.first.blocks[start / size]!;
      const retention = shared.retention ? retentionAt(shared.retention, start, promptLength) : null;
      const isNamed = !endsInName(start + size, shared.spans ?? []);
      if (!isNamed && start + 2 * size > numWritten) break;
      const found = tree.child(node, tokens, start);
      const known = found && !isNamed ? this.#confirmed(found, tokens, start + size) : found;
      if (known === 'other') break;
      if (known) {
        if (!this.#cache.isPrimary(known)) this.#cache.replaceSecondary(known, block);
        else if (known.block !== block) this.#exchange(tables, start / size, known);
        if (retention) this.#cache.retain(known, retention);
        node = known;
        nodes.push(node);
        continue;
      }
      if (stored.length === 0) parentHash = node.parent === null ? null : node.hash;
      node = this.#cache.insert(node, tokens, start, block, retention);
      nodes.push(node);
      if (!events.isOn) continue;
      const { hash: blockHash, priority } = node;
      stored.push({
        blockHash,
        tokens: Array.from(tree.tokensOf(node)),
        loraId,
        cacheSalt,
        cacheLevel: 0,
        priority,
      });
    }
    if (stored.length > 0) events.add({ type: 'stored', parentHash, blocks: stored });
    return nodes;
  }

  /**
   * The block that ends in a span's name, where the next one of these tokens is below it, so that it is of the same span. One that is a leaf
   * is taken out: null. 'other': others use it.
   */
  #confirmed(found: PrefixNode, tokens: Int32Array, end: number): PrefixNode | 'other' | null {
    if (this.#cache.tree.child(found, tokens, end)) return found;
    if (!this.#cache.isUnusedLeaf(found) || !this.#cache.isPrimary(found)) return 'other';
    this.#cache.release(this.#cache.claim(found));
    return null;
  }

  /**
   * Gets a block of the sequence's own with the content of `partial`, when `blocksToTake` blocks are still to be taken.
   * Normally it is a copy, since others may come for the whole block, which counts as used now and is evicted late. The
   * block itself is taken only if the sequence takes all available blocks, so that it would be evicted anyway, or if
   * copying is off. A swapped-out block is always copied.
   *
   *   to take 2, available 5      copy; the two blocks that were released longest ago go
   *   to take 2, available 2      one of these is `partial` itself: taken over in place
   */
  #takePartial(partial: PrefixNode, blocksToTake: number): number {
    const takesAll = blocksToTake >= this.#cache.availableBlocks;
    const mayClaim = this.#cache.isPrimary(partial) && this.#cache.isUnusedLeaf(partial);
    if (mayClaim && (takesAll || !this.#copyOnPartialReuse)) {
      this.#counters.addKept(1);
      return this.#cache.claim(partial);
    }
    this.#cache.touch(partial);
    const block = this.#cache.take();
    this.#counters.addNew(1);
    // partial.block is its place now: to make room it may have been swapped out, or handed out as this very block.
    if (partial.block !== block) this.#changes.copy(partial.block, block);
    return block;
  }

  #exchange(tables: BeamTables, index: number, node: PrefixNode): void {
    // The node is held while the tables change over, so that it is not evicted meanwhile.
    this.#cache.acquire(node);
    tables.exchange(index, node.block);
    this.#cache.release(node.block);
  }
}

/** True where the tokens before `end` have a part of a span's name, and not all of it. */
const endsInName = (end: number, spans: readonly TokenSpan[]) =>
  spans.some((span) => span.start < end && end < Math.min(span.end, span.start + TOKENS_OF_A_NAME));

/**
 * The match without the span in which it ends, and what follows that span's beginning:
 *
 *   prompt      |----|--pp|pppp|pp--|     a picture p, tokensPerBlock 4
 *   found       |####|####|####|#  .      ends in it
 *   match       |####|##                  ends in front of it: the second block is a part now
 */
function withoutCutSpans(match: PrefixMatch, spans: readonly TokenSpan[], size: number): PrefixMatch {
  const { nodes, partialLength } = match;
  const length = nodes.length * size + partialLength;
  const cut = spans.find(({ start, end }) => start < length && length < end);
  if (cut === undefined) return match;
  const whole = Math.floor(cut.start / size);
  if (whole === nodes.length) {
    const left = cut.start - whole * size;
    return { nodes, partial: left > 0 ? match.partial : null, partialLength: left };
  }
  const left = cut.start % size;
  return { nodes: nodes.slice(0, whole), partial: left > 0 ? nodes[whole]! : null, partialLength: left };
}
