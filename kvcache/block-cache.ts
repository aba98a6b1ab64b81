import { BlockPool } from './block-pool.js';
import { KvCacheEvents } from './cache-events.js';
import { EvictionQueues, isEvictedBefore } from './eviction-queues.js';
import type { MemoryChanges } from './memory-changes.js';
import { type PrefixNode, PrefixTree } from './prefix-tree.js';
import { PriorityExpiry } from './priority-expiry.js';
import { DEFAULT_RETENTION_PRIORITY, type RetentionPriority } from './retention.js';

/** Default of the priority from which an evicted block is worth a place in the secondary pool. */
export const DEFAULT_OFFLOAD_MIN_PRIORITY = 30;

export interface BlockCacheOptions {
  /** Number of blocks in the primary pool, numbered from 0; only these are ever in tables. */
  numBlocks: number;
  tokensPerBlock: number;
  /** Number of blocks in the secondary pool, numbered after the primary ones; default 0. */
  numSecondaryBlocks?: number;
  /** Lowest priority with which an evicted block goes to the secondary pool; default 30. */
  secondaryOffloadMinPriority?: number;
  /** Most events kept until they are drained; default 0. */
  maxEvents?: number;
  /** Called with each node that enters the tree, and that leaves it. */
  onInserted?: (node: PrefixNode) => void;
  onRemoved?: (node: PrefixNode) => void;
}

/**
 * The blocks of both pools, and which of them are kept for their content. A block of the primary pool is in one of
 * three states:
 *
 *             take                     release, not in the tree
 *   free  ------------->  held  ------------------------------->  free
 *     ^                  ^    |
 *     |          acquire |    | release, in the tree
 *     |                  |    v
 *     +---- evict ------  cached                  node and content may go on in the secondary pool:
 *             |
 *             +--- swap out --->  secondary  --- acquire: swap in, to a block that is taken --->  held
 *                                     |
 *                                     +--- evict: gone
 *
 * A held block may be in the tree too, and in several tables. A holder of a block of the tree holds all its
 * ancestors, so nothing below a cached block is held, and every cached block can be evicted in the end: free and cached
 * blocks together are available. The block that is evicted is a leaf of the lowest priority, and among these the one
 * released longest ago; as tables are released from the tail, tails go before heads.
 *
 * Content in the secondary pool does not add to the available blocks: it needs a primary block again before it is of
 * use. In each branch of the tree the primary part comes first:
 *
 *   root -- 7 -- 2 ------ 5            primary pool: 2 goes only after 5, but does not wait for 31 and 30
 *                +-- 31 -- 30          secondary pool: 30 is the leaf that goes first
 */
export class BlockCache {
  readonly tree: PrefixTree;
  readonly events: KvCacheEvents;
  readonly #changes: MemoryChanges;
  readonly #numPrimary: number;
  readonly #offloadMinPriority: number;
  readonly #primary: BlockPool;
  readonly #secondary: BlockPool;
  /** Node of each block that is in the tree, indexed by block. */
  readonly #nodes: (PrefixNode | undefined)[];
  readonly #queues: EvictionQueues;
  readonly #expiry: PriorityExpiry;
  readonly #onInserted: ((node: PrefixNode) => void) | undefined;
  readonly #onRemoved: ((node: PrefixNode) => void) | undefined;
  /** Changes whenever the tree does. */
  #version = 0;
  #numCached = 0;
  #numReleases = 0;
  #swappedOut = 0;
  #swappedIn = 0;

  constructor(options: BlockCacheOptions, changes: MemoryChanges) {
    const { numBlocks, tokensPerBlock, numSecondaryBlocks = 0 } = options;
    const all = numBlocks + numSecondaryBlocks;
    this.tree = new PrefixTree(tokensPerBlock);
    this.events = new KvCacheEvents(options.maxEvents ?? 0);
    this.#changes = changes;
    this.#onInserted = options.onInserted;
    this.#onRemoved = options.onRemoved;
    this.#numPrimary = numBlocks;
    this.#offloadMinPriority = options.secondaryOffloadMinPriority ?? DEFAULT_OFFLOAD_MIN_PRIORITY;
    this.#primary = new BlockPool(numBlocks);
    this.#secondary = new BlockPool(numSecondaryBlocks, numBlocks);
    this.#nodes = new Array(all);
    this.#queues = new EvictionQueues(all, {
      nodes: this.#nodes,
      isPrimary: (node) => this.isPrimary(node),
      isHeld: (node) => this.isHeld(node),
    });
    this.#expiry = new PriorityExpiry(all, this.#nodes);
    const levels = numSecondaryBlocks > 0 ? [numBlocks, numSecondaryBlocks] : [numBlocks];
    this.events.add({ type: 'created', numBlocksPerCacheLevel: levels });
  }

  /** Number of available primary blocks: free blocks, and cached blocks without a holder. */
  get availableBlocks(): number {
    return this.#primary.freeBlocks + this.#numCached;
  }

  get version(): number {
    return this.#version;
  }

  get secondary(): { maxBlocks: number; usedBlocks: number; swappedOut: number; swappedIn: number } {
    const { numBlocks: maxBlocks, freeBlocks } = this.#secondary;
    const usedBlocks = maxBlocks - freeBlocks;
    return { maxBlocks, usedBlocks, swappedOut: this.#swappedOut, swappedIn: this.#swappedIn };
  }

  isPrimary({ block }: PrefixNode): boolean {
    return block < this.#numPrimary;
  }

  isHeld(node: PrefixNode): boolean {
    return this.isPrimary(node) && this.#primary.references(node.block) > 0;
  }

  references(block: number): number {
    return this.#primary.references(block);
  }

  /** Takes a primary block with one reference and undefined content; evicts one if none is free. */
  take(): number {
    const next = this.#primary.freeBlocks === 0 ? this.#queues.nextPrimary() : undefined;
    if (next) this.#evict(next);
    return this.#primary.take();
  }

  /** Adds a holder to a node of the tree. A node that was swapped out gets a primary block, which must be available. */
  acquire(node: PrefixNode): void {
    if (!this.isPrimary(node)) {
      this.#swapIn(node, this.take());
      this.#swappedIn += 1;
      return;
    }
    if (!this.isHeld(node)) this.#numCached -= 1;
    this.#primary.reference(node.block);
    this.#queues.update(node);
  }

  /** Adds a holder to a block that is already held, in the tree or not. */
  share(block: number): void {
    this.#primary.reference(block);
  }

  /**
   * True if the node's block has no holder and no children: then, as far as can be seen, no other request can
   * use it.
   */
  isUnusedLeaf(node: PrefixNode): boolean {
    return !this.isHeld(node) && node.children.length === 0;
  }

  /** Takes an unused leaf out of the tree; the caller holds its primary block, content and all. */
  claim(node: PrefixNode): number {
    const { block } = node;
    this.#detach(node);
    this.#primary.reference(block);
    return block;
  }

  /** Marks the node's content as used again: it is evicted as late as if it had just been released. */
  touch(node: PrefixNode): void {
    this.#queues.remove(node);
    this.#noteRelease(node);
    this.#queues.update(node);
  }

  /** Runs `use`, during which the node is not evicted from the secondary pool. */
  whilePinned(node: PrefixNode | null, use: () => void): void {
    this.#queues.whilePinned(node, use);
  }

  /** Removes one holder. A block without holders is free, or cached if it is in the tree. */
  release(block: number): void {
    if (this.#primary.unreference(block) > 0) return;
    const node = this.#nodes[block];
    if (!node) {
      this.#primary.free(block);
      return;
    }
    this.#numCached += 1;
    this.#noteRelease(node);
    this.#queues.update(node);
  }

  /** Puts a held block, which holds tokens[start, start + tokensPerBlock), into the tree below `parent`. */
  insert(
    parent: PrefixNode,
    tokens: Int32Array,
    start: number,
    block: number,
    retention: RetentionPriority | null,
  ): PrefixNode {
    const priority = retention?.priority ?? DEFAULT_RETENTION_PRIORITY;
    const node = this.tree.insert(parent, tokens, start, block, priority, Number.POSITIVE_INFINITY);
    this.#changes.keep(block);
    this.#nodes[block] = node;
    this.#version += 1;
    parent.primaryChildren += 1;
    this.#expiry.set(node, retention?.durationMs);
    this.#onInserted?.(node);
    return node;
  }

  /** Puts a held block that is in no tree in the place of a swapped-out one with the same content. */
  replaceSecondary(node: PrefixNode, block: number): void {
    this.#changes.keep(block);
    const old = node.block;
    this.#move(node, block);
    this.#secondary.release(old);
  }

  /** Changes how long a block of the tree is kept. */
  retain(node: PrefixNode, retention: RetentionPriority): void {
    this.#setPriority(node, retention.priority);
    this.#expiry.set(node, retention.durationMs);
  }

  /** Reports that a block of the tree has got a state snapshot at its end, or has lost it. */
  noteState(blockHash: number, newValue: boolean): void {
    this.events.add({ type: 'updated', blockHash, hasState: { oldValue: !newValue, newValue } });
  }

  /** Sets the time, on any clock that goes forward; priorities whose time is over fall back to the default. */
  advanceClock(nowMs: number): void {
    for (const node of this.#expiry.advance(nowMs)) this.#setPriority(node, DEFAULT_RETENTION_PRIORITY);
  }

  /**
   * Forgets all content: the tree is empty afterwards. Blocks without holders become free, those of the
   * secondary pool too; a held block stays with its holders and becomes free once they have released it.
   * Returns how many blocks were in the tree.
   */
  dropAll(): number {
    const nodes = this.tree.removeAll();
    for (const node of nodes) {
      this.#queues.remove(node);
      this.#expiry.remove(node);
      this.#onRemoved?.(node);
      this.#nodes[node.block] = undefined;
      if (!this.isPrimary(node)) this.#secondary.release(node.block);
      else if (!this.isHeld(node)) this.#primary.free(node.block);
    }
    this.#numCached = 0;
    if (nodes.length === 0) return 0;
    this.#version += 1;
    this.events.add({ type: 'removed', blockHashes: nodes.map(({ hash }) => hash) });
    return nodes.length;
  }

  /** State that the integrity check reads. */
  inspect(): {
    free: Int32Array;
    referenceCounts: Int32Array;
    numCached: number;
    secondaryFree: Int32Array;
    numSecondaryBlocks: number;
    nodes: readonly (PrefixNode | undefined)[];
    isEvictable: (block: number) => boolean;
  } {
    return {
      ...this.#primary.inspect(),
      numCached: this.#numCached,
      secondaryFree: this.#secondary.inspect().free,
      numSecondaryBlocks: this.#secondary.numBlocks,
      nodes: this.#nodes,
      isEvictable: (block) => this.#queues.has(block),
    };
  }

  /**
   * Makes a primary block free: its content goes to the secondary pool if it is worth a place there, else it is lost.
   */
  #evict(node: PrefixNode): void {
    const { block } = node;
    const place = this.#secondaryPlaceFor(node);
    if (place < 0) {
      this.#detach(node);
    } else {
      this.#changes.copy(block, place);
      this.#numCached -= 1;
      this.#swappedOut += 1;
      this.#move(node, place);
    }
    this.#primary.free(block);
  }

  /**
   * Finds a secondary block for a node that leaves the primary pool; -1: there is none. Both pools together are one
   * cache: the least valuable of the secondary leaves and the node itself is dropped. A node with swapped-out blocks
   * below it goes with them whatever its own priority, since they would be lost without it. (There is always a leaf to
   * drop then: its own last one at worst, which is not pinned, because the blocks before a pinned one are held.)
   */
  #secondaryPlaceFor(node: PrefixNode): number {
    const carriesOthers = node.children.length > 0;
    if (!carriesOthers && node.priority < this.#offloadMinPriority) return -1;
    if (this.#secondary.freeBlocks === 0) {
      const last = this.#queues.nextSecondary();
      if (!last || (!carriesOthers && isEvictedBefore(node, last))) return -1;
      const { block } = last;
      this.#detach(last);
      this.#secondary.release(block);
    }
    return this.#secondary.take();
  }

  /** Brings the node's content back to a primary block that the caller holds. */
  #swapIn(node: PrefixNode, block: number): void {
    const old = node.block;
    this.#changes.copy(old, block);
    this.#move(node, block);
    this.#secondary.release(old);
  }

  /** Notes that the node's content is in another block, of the other pool. */
  #move(node: PrefixNode, block: number): void {
    const { parent } = node;
    const [oldValue, newValue] = this.isPrimary(node) ? [0, 1] : [1, 0];
    this.#queues.remove(node);
    this.#expiry.remove(node);
    this.#nodes[node.block] = undefined;
    node.block = block;
    this.#nodes[block] = node;
    this.#expiry.add(node);
    if (parent) {
      parent.primaryChildren += oldValue - newValue;
      this.#queues.update(parent);
    }
    this.#queues.update(node);
    this.events.add({ type: 'updated', blockHash: node.hash, cacheLevel: { oldValue, newValue } });
  }

  /** Removes a leaf without holders from the tree; its parent may then be a leaf. */
  #detach(node: PrefixNode): void {
    const { parent, block } = node;
    this.#queues.remove(node);
    this.#expiry.remove(node);
    this.#onRemoved?.(node);
    this.tree.remove(node);
    this.#version += 1;
    this.#nodes[block] = undefined;
    this.events.add({ type: 'removed', blockHashes: [node.hash] });
    if (this.isPrimary(node)) {
      this.#numCached -= 1;
      if (parent) parent.primaryChildren -= 1;
    }
    if (parent) this.#queues.update(parent);
  }

  #noteRelease(node: PrefixNode): void {
    node.releasedAt = this.#numReleases;
    this.#numReleases += 1;
  }

  #setPriority(node: PrefixNode, priority: number): void {
    if (node.priority === priority) return;
    this.#queues.remove(node);
    this.events.add({
      type: 'updated',
      blockHash: node.hash,
      priority: { oldValue: node.priority, newValue: priority },
    });
    node.priority = priority;
    this.#queues.update(node);
  }
}
