import { BlockPool } from './block-pool.js';
import { KvCacheEvents } from './cache-events.js';
import { IndexedHeap } from './indexed-heap.js';
import { type PrefixNode, PrefixTree } from './prefix-tree.js';
import { DEFAULT_RETENTION_PRIORITY, type RetentionPriority } from './retention.js';

/**
 * The pool's blocks, and which of them are kept for their content. A block is in one of three states:
 *
 *             take                     release, not in the tree
 *   free  ------------->  held  ------------------------------->  free
 *     ^                  ^    |
 *     |          acquire |    | release, in the tree
 *     |                  |    v
 *     +---- evict ------  cached
 *
 * A held block may be in the tree too, and in several tables. Whoever holds a block of the tree holds all its
 * ancestors, so nothing below a cached block is held, and every cached block can be evicted in the end: free and
 * cached together are what can be had. Evicted is a leaf, that of the lowest priority, and among these the one
 * released longest ago; as tables are released from the tail, tails go before heads.
 */
export class BlockCache {
  readonly tree: PrefixTree;
  readonly events: KvCacheEvents;
  readonly #pool: BlockPool;
  /** The node of each block that is in the tree. */
  readonly #nodes: (PrefixNode | undefined)[];
  /** When each block was released last: a count of releases, not a time. */
  readonly #releasedAt: Float64Array;
  /** Cached leaves, the next one to be evicted first. */
  readonly #evictable: IndexedHeap;
  /** Blocks whose priority ends, the next one first. */
  readonly #expiring: IndexedHeap;
  /** Changes whenever the tree does. */
  #version = 0;
  #numCached = 0;
  #numReleases = 0;
  #nowMs = 0;

  constructor(numBlocks: number, tokensPerBlock: number, maxEvents: number) {
    this.tree = new PrefixTree(tokensPerBlock);
    this.events = new KvCacheEvents(maxEvents);
    this.#pool = new BlockPool(numBlocks);
    this.#nodes = new Array(numBlocks);
    this.#releasedAt = new Float64Array(numBlocks);
    this.#evictable = new IndexedHeap(numBlocks, (a, b) => this.#goesBefore(a, b));
    this.#expiring = new IndexedHeap(
      numBlocks,
      (a, b) => this.#nodes[a]!.expiresAtMs < this.#nodes[b]!.expiresAtMs,
    );
    this.events.add({ type: 'created', numBlocksPerCacheLevel: [numBlocks] });
  }

  /** Blocks that can be had: free ones, and cached ones that nobody holds. */
  get availableBlocks(): number {
    return this.#pool.freeBlocks + this.#numCached;
  }

  get version(): number {
    return this.#version;
  }

  isHeld(block: number): boolean {
    return this.#pool.references(block) > 0;
  }

  references(block: number): number {
    return this.#pool.references(block);
  }

  /** A block with one reference, its content undefined; evicts one where none is free. */
  take(): number {
    if (this.#pool.freeBlocks === 0 && this.#evictable.size > 0) this.#evict();
    return this.#pool.take();
  }

  /** One more holder for a block of the tree. */
  acquire(node: PrefixNode): void {
    if (!this.isHeld(node.block)) {
      this.#numCached -= 1;
      this.#evictable.remove(node.block);
    }
    this.#pool.reference(node.block);
  }

  /** Whether nobody holds the node and nothing hangs on it, so that its block may be had for its content. */
  isClaimable(node: PrefixNode): boolean {
    return this.#evictable.has(node.block);
  }

  /** Takes a claimable node out of the tree; the caller holds its block, content and all. */
  claim(node: PrefixNode): number {
    this.#detach(node);
    this.#pool.reference(node.block);
    return node.block;
  }

  /** One holder less. A block that nobody holds any more is free, or cached if it is in the tree. */
  release(block: number): void {
    if (this.#pool.unreference(block) > 0) return;
    const node = this.#nodes[block];
    if (!node) {
      this.#pool.free(block);
      return;
    }
    this.#numCached += 1;
    this.#releasedAt[block] = this.#numReleases;
    this.#numReleases += 1;
    if (node.children.length === 0) this.#evictable.push(block);
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
    this.#nodes[block] = node;
    this.#version += 1;
    this.#setExpiry(node, retention);
    return node;
  }

  /** Changes how long a block of the tree is kept. */
  retain(node: PrefixNode, retention: RetentionPriority): void {
    this.#setPriority(node, retention.priority);
    this.#setExpiry(node, retention);
  }

  /** Tells the time, on any clock that goes forward; priorities whose time is over fall back to the default. */
  advanceClock(nowMs: number): void {
    this.#nowMs = nowMs;
    for (let block = this.#expiring.peek(); block >= 0; block = this.#expiring.peek()) {
      const node = this.#nodes[block]!;
      if (node.expiresAtMs > nowMs) return;
      this.#expiring.remove(block);
      node.expiresAtMs = Number.POSITIVE_INFINITY;
      this.#setPriority(node, DEFAULT_RETENTION_PRIORITY);
    }
  }

  /** For the integrity check. */
  inspect(): {
    free: Int32Array;
    referenceCounts: Int32Array;
    numCached: number;
    nodes: readonly (PrefixNode | undefined)[];
    isEvictable: (block: number) => boolean;
  } {
    return {
      ...this.#pool.inspect(),
      numCached: this.#numCached,
      nodes: this.#nodes,
      isEvictable: (block) => this.#evictable.has(block),
    };
  }

  #goesBefore(a: number, b: number): boolean {
    const priorities = this.#nodes[a]!.priority - this.#nodes[b]!.priority;
    return priorities === 0 ? this.#releasedAt[a]! < this.#releasedAt[b]! : priorities < 0;
  }

  #evict(): void {
    const node = this.#nodes[this.#evictable.peek()]!;
    this.#detach(node);
    this.#pool.free(node.block);
  }

  /** Takes a cached leaf out of the tree; its parent may be a leaf then. */
  #detach(node: PrefixNode): void {
    const { parent, block } = node;
    this.#evictable.remove(block);
    this.#expiring.remove(block);
    this.tree.remove(node);
    this.#version += 1;
    this.#nodes[block] = undefined;
    this.#numCached -= 1;
    this.events.add({ type: 'removed', blockHashes: [node.hash] });
    if (parent && parent.block >= 0 && parent.children.length === 0 && !this.isHeld(parent.block)) {
      this.#evictable.push(parent.block);
    }
  }

  #setPriority(node: PrefixNode, priority: number): void {
    if (node.priority === priority) return;
    const isQueued = this.#evictable.has(node.block);
    this.#evictable.remove(node.block);
    this.events.add({
      type: 'updated',
      blockHash: node.hash,
      priority: { oldValue: node.priority, newValue: priority },
    });
    node.priority = priority;
    if (isQueued) this.#evictable.push(node.block);
  }

  #setExpiry(node: PrefixNode, retention: RetentionPriority | null): void {
    this.#expiring.remove(node.block);
    node.expiresAtMs = this.#nowMs + (retention?.durationMs ?? Number.POSITIVE_INFINITY);
    if (Number.isFinite(node.expiresAtMs)) this.#expiring.push(node.block);
  }
}
