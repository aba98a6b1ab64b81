import type { KvCacheEvent } from '../../kvcache/cache-events.js';

/** Number of a worker, small, and its own as long as it is there. */
export type WorkerIndex = number;

/**
 * Which workers hold which blocks, by the blocks' hashes: the union of what their events have told. A hash stands for all tokens up to
 * the block's end, so whoever holds a block is of use only if it holds those before it too.
 *
 *   prompt   h1  h2  h3  h4
 *   A         x   x   x          3 blocks
 *   B         x       x   x      1 block: without h2 it has to begin there
 *   C                            0
 */
export class BlockIndex {
  readonly #maxBlocks: number;
  /** Workers of each block. Most blocks have one. */
  readonly #holders = new Map<number, WorkerIndex | Set<WorkerIndex>>();
  readonly #blocksOf = new Map<WorkerIndex, Set<number>>();
  #size = 0;

  /** @param maxBlocks most blocks that are noted, over all workers: what comes when it is full is not noted */
  constructor(maxBlocks: number) {
    this.#maxBlocks = maxBlocks;
  }

  /** Number of blocks over all workers; one that several hold counts for each. */
  get size(): number {
    return this.#size;
  }

  /** Number of blocks of one worker. */
  sizeOf(worker: WorkerIndex): number {
    return this.#blocksOf.get(worker)?.size ?? 0;
  }

  holds(worker: WorkerIndex, hash: number): boolean {
    return this.#blocksOf.get(worker)?.has(hash) ?? false;
  }

  /** Notes what a worker's cache has told, in its order. */
  note(worker: WorkerIndex, events: readonly KvCacheEvent[]): void {
    for (const { data } of events) {
      if (data.type === 'created') this.clear(worker);
      if (data.type === 'stored') for (const { blockHash } of data.blocks) this.add(worker, blockHash);
      if (data.type === 'removed') for (const hash of data.blockHashes) this.remove(worker, hash);
    }
  }

  add(worker: WorkerIndex, hash: number): void {
    const blocks = this.#blocksOf.get(worker) ?? new Set();
    if (blocks.has(hash) || this.#size >= this.#maxBlocks) return;
    this.#blocksOf.set(worker, blocks.add(hash));
    this.#size += 1;
    const held = this.#holders.get(hash);
    if (held === undefined) this.#holders.set(hash, worker);
    else if (typeof held === 'number') this.#holders.set(hash, new Set([held, worker]));
    else held.add(worker);
  }

  remove(worker: WorkerIndex, hash: number): void {
    if (!this.#blocksOf.get(worker)?.delete(hash)) return;
    this.#size -= 1;
    const held = this.#holders.get(hash);
    if (typeof held !== 'object') {
      this.#holders.delete(hash);
      return;
    }
    held.delete(worker);
    if (held.size === 1) for (const last of held) this.#holders.set(hash, last);
  }

  /** Forgets all blocks of a worker: it has died, or events of it were lost. */
  clear(worker: WorkerIndex): void {
    for (const hash of this.#blocksOf.get(worker) ?? []) this.remove(worker, hash);
    this.#blocksOf.delete(worker);
  }

  /** Number of leading blocks that each worker holds, of those that hold any. @param hashes of the prompt's blocks, in order */
  matches(hashes: readonly number[]): Map<WorkerIndex, number> {
    const found = new Map<WorkerIndex, number>();
    for (const [length, hash] of hashes.entries()) {
      const held = this.#holders.get(hash);
      if (held === undefined) break;
      let isAny = false;
      for (const worker of typeof held === 'number' ? [held] : held) {
        if ((found.get(worker) ?? 0) !== length) continue;
        found.set(worker, length + 1);
        isAny = true;
      }
      if (!isAny) break;
    }
    return found;
  }
}
