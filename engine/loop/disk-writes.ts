import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { DiskStore } from '../disk-cache/disk-messages.js';
import type { BlockTransfer } from './block-transfer.js';

/** Bytes that are copied out of the pool in one iteration while requests run, and while none do. */
const BUSY_BYTES = 4 * 2 ** 20;
const IDLE_BYTES = 16 * 2 ** 20;
/** Bytes on their way to the disk; what becomes cached meanwhile waits in the cache. */
const MOST_BYTES = 64 * 2 ** 20;

export interface WritesOptions {
  store: DiskStore;
  kvCache: KvCacheManager;
  transfer: BlockTransfer;
  /** Lowest retention priority of blocks that are written. */
  minPriority: number;
}

/** Which blocks are on the disk, and the writing of those that are not. */
export class DiskWrites {
  readonly #options: WritesOptions;
  /** Hashes of the blocks that are there. */
  #known = new Set<number>();
  /** Of those that are being written. */
  readonly #pending = new Set<number>();
  #pendingBlocks = 0;
  #writtenBlocks = 0;

  constructor(options: WritesOptions) {
    this.#options = options;
  }

  get writtenBlocks(): number {
    return this.#writtenBlocks;
  }

  get isWriting(): boolean {
    return this.#pendingBlocks > 0;
  }

  get isEmpty(): boolean {
    return this.#known.size === 0;
  }

  has(hash: number): boolean {
    return this.#known.has(hash);
  }

  setKnown(hashes: Iterable<number>): void {
    this.#known = new Set(hashes);
  }

  forget(hashes: readonly number[]): void {
    for (const hash of hashes) this.#known.delete(hash);
  }

  /** Forgets all; what is being written is of no use. */
  reset(): void {
    this.#known.clear();
    this.#pending.clear();
  }

  noteWritten(numBlocks: number, hashes: readonly number[], removed: readonly number[]): void {
    this.#pendingBlocks -= numBlocks;
    this.#writtenBlocks += hashes.length;
    for (const hash of hashes) this.#known.add(hash);
    this.forget(removed);
    if (this.#pendingBlocks === 0) this.#pending.clear();
  }

  /** Hands over blocks to be written, as many as an iteration has time for. False: there are none, or the disk is behind. */
  advance(isBusy: boolean): boolean {
    const { store, kvCache, transfer } = this.#options;
    if (kvCache.numUnwritten === 0) return false;
    const { bytesPerBlock } = store.format;
    const room = Math.floor(MOST_BYTES / bytesPerBlock) - this.#pendingBlocks;
    const most = Math.max(1, Math.floor((isBusy ? BUSY_BYTES : IDLE_BYTES) / bytesPerBlock));
    const canWrite = room > 0 || this.#pendingBlocks === 0;
    if (!canWrite || !transfer.canRead) return false;
    const blocks = kvCache.takeUnwritten(Math.max(1, Math.min(most, room)), this.#isWanted);
    if (blocks.length === 0) return false;
    const bytes = transfer.readBlocks(Int32Array.from(blocks, ({ block }) => block));
    this.#pendingBlocks += blocks.length;
    store.post({ type: 'write', bytes, blocks: blocks.map(({ hash, chain }) => ({ ...chain, hash })) });
    return true;
  }

  readonly #isWanted = (hash: number, parentHash: number | null, priority: number): boolean => {
    if (priority < this.#options.minPriority || this.#isThere(hash)) return false;
    if (parentHash !== null && !this.#isThere(parentHash)) return false;
    this.#pending.add(hash);
    return true;
  };

  #isThere(hash: number): boolean {
    return this.#known.has(hash) || this.#pending.has(hash);
  }
}
