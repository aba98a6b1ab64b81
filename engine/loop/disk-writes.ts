import type { CachedBlock, KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { contentBytes, type DiskKey, stateKey } from '../disk-cache/block-file.js';
import type { DiskStore, WrittenBlock } from '../disk-cache/disk-messages.js';
import type { BlockTransfer } from './block-transfer.js';

/** Bytes that are copied out of the pool in one iteration while requests run, and while none do. */
const BUSY_BYTES = 4 * 2 ** 20;
const IDLE_BYTES = 16 * 2 ** 20;
/** Bytes on their way to the disk; what becomes cached meanwhile waits in the cache. */
const MAX_PENDING_BYTES = 64 * 2 ** 20;

export interface WritesOptions {
  store: DiskStore;
  kvCache: KvCacheManager;
  transfer: BlockTransfer;
  /** Lowest retention priority of blocks that are written. */
  minPriority: number;
}

/** What is on the disk, and the writing of what is not: blocks, and the states after some of them. */
export class DiskWrites {
  readonly #options: WritesOptions;
  #known = new Set<DiskKey>();
  /** Keys of what is being written. */
  readonly #pending = new Set<DiskKey>();
  #pendingBytes = 0;
  #writtenBlocks = 0;

  constructor(options: WritesOptions) {
    this.#options = options;
  }

  /** Number of blocks written, states not counted. */
  get writtenBlocks(): number {
    return this.#writtenBlocks;
  }

  get isWriting(): boolean {
    return this.#pendingBytes > 0;
  }

  has(key: DiskKey): boolean {
    return this.#known.has(key);
  }

  setKnown(keys: Iterable<DiskKey>): void {
    this.#known = new Set(keys);
  }

  forget(keys: readonly DiskKey[]): void {
    for (const key of keys) this.#known.delete(key);
  }

  /** Forgets all; what is being written is of no use. */
  reset(): void {
    this.#known.clear();
    this.#pending.clear();
  }

  noteWritten(numBytes: number, keys: readonly DiskKey[], removed: readonly DiskKey[]): void {
    this.#pendingBytes -= numBytes;
    this.#writtenBlocks += keys.filter((key) => key >= 0).length;
    for (const key of keys) this.#known.add(key);
    this.forget(removed);
    if (this.#pendingBytes === 0) this.#pending.clear();
  }

  /** Hands over what is to be written, as much as an iteration has time for. False: there is nothing, or the disk is behind. */
  advance(isBusy: boolean): boolean {
    const { store, kvCache, transfer } = this.#options;
    if (kvCache.numUnwritten === 0 || !transfer.canRead) return false;
    const most = Math.min(isBusy ? BUSY_BYTES : IDLE_BYTES, MAX_PENDING_BYTES - this.#pendingBytes);
    const [blocks, slots]: [number[], number[]] = [[], []];
    const [ofBlocks, ofStates]: [WrittenBlock[], WrittenBlock[]] = [[], []];
    for (let bytes = 0; bytes < most; ) {
      const next = kvCache.takeUnwritten(this.#isWanted);
      if (next === null) break;
      const { hash, block, state, chain } = next;
      if (this.#begin(hash)) {
        blocks.push(block);
        ofBlocks.push({ ...chain, key: hash });
        bytes += contentBytes(store.format, hash);
      }
      if (state < 0 || !this.#begin(stateKey(hash))) continue;
      slots.push(state);
      ofStates.push({ ...chain, key: stateKey(hash) });
      bytes += contentBytes(store.format, stateKey(hash));
    }
    if (blocks.length + slots.length === 0) return false;
    const bytes = transfer.readContents(blocks, slots);
    this.#pendingBytes += bytes.length;
    store.post({ type: 'write', bytes, blocks: [...ofBlocks, ...ofStates] });
    return true;
  }

  /** Of use on the disk is a block that has the one in front of it there, and states that have their block. */
  readonly #isWanted = ({ hash, state, parentHash, priority }: CachedBlock): boolean => {
    if (priority < this.#options.minPriority) return false;
    if (parentHash !== null && !this.#isThere(parentHash)) return false;
    return !this.#isThere(hash) || (state >= 0 && !this.#isThere(stateKey(hash)));
  };

  /** Marks it as being written; false: it is there. */
  #begin(key: DiskKey): boolean {
    if (this.#isThere(key)) return false;
    this.#pending.add(key);
    return true;
  }

  #isThere(key: DiskKey): boolean {
    return this.#known.has(key) || this.#pending.has(key);
  }
}
