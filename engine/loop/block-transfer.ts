import type { PromptBlocks } from '../../kvcache/block-hashes.js';
import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { Executor } from '../executors/executor.js';
import type { RunningSteps } from './iteration.js';

/** Moves cached blocks out of this engine, and those of equal engines into it. Called between two iterations. */
export class BlockTransfer {
  readonly #executor: Executor;
  readonly #kvCache: KvCacheManager;
  readonly #runningSteps: RunningSteps;

  constructor(executor: Executor, kvCache: KvCacheManager, runningSteps: RunningSteps) {
    this.#executor = executor;
    this.#kvCache = kvCache;
    this.#runningSteps = runningSteps;
  }

  /**
   * The content of the cached full blocks that another engine may find of the prompt, of as many as fit into `maxBytes`.
   * Empty where there are none, where the executor gives none, and while a step runs beside the loop.
   */
  read(prompt: PromptBlocks, maxBytes: number): Uint8Array<ArrayBuffer> {
    const access = this.#access();
    if (access === null) return new Uint8Array(0);
    const most = Math.floor(maxBytes / access.bytesPerBlock);
    const blocks = this.#cached(prompt).subarray(0, most);
    const bytes = new Uint8Array(blocks.length * access.bytesPerBlock);
    if (blocks.length === 0) return bytes;
    this.#makeCopies();
    access.readBlocks(blocks, bytes);
    return bytes;
  }

  /** Number of full blocks, from the start of the prompt on, that need not be brought: they are cached. */
  count(prompt: PromptBlocks): number {
    return this.#access() === null ? 0 : this.#cached(prompt).length;
  }

  /**
   * Makes full blocks of the prompt, from number `first` on, cached ones, with content that `read` of an equal engine gave.
   * Returns how many of these blocks the cache has now; 0 where the bytes are no whole blocks. Content that is not finite
   * is not kept: it would fail every later request of the prompt.
   */
  write(prompt: PromptBlocks, first: number, bytes: Uint8Array): number {
    const access = this.#access();
    if (access === null || bytes.length % access.bytesPerBlock !== 0) return 0;
    const count = bytes.length / access.bytesPerBlock;
    const adopted = this.#kvCache.adoptBlocks(prompt, first, count);
    // Blocks that were evicted for it may have to be swapped out before they are written over.
    this.#makeCopies();
    if (adopted.blocks.length > 0) {
      const start = (adopted.first - first) * access.bytesPerBlock;
      const end = start + adopted.blocks.length * access.bytesPerBlock;
      access.writeBlocks(adopted.blocks, bytes.subarray(start, end));
      if (!this.#executor.areFinite(adopted.blocks)) this.#kvCache.dropAdopted(prompt, adopted);
    }
    const { tokensPerBlock } = this.#kvCache;
    const has = this.#kvCache.cachedBlocks(prompt, (first + count) * tokensPerBlock).length;
    return Math.max(0, has - first);
  }

  /** The last token is always computed, for its logits. */
  #cached(prompt: PromptBlocks): Int32Array {
    return this.#kvCache.cachedBlocks(prompt, prompt.tokens.length - 1);
  }

  #access() {
    const { blockAccess = null } = this.#executor;
    // A block is of no use to an engine that has not the states behind it.
    const isUseful = this.#kvCache.enableBlockReuse && this.#kvCache.numStateSlots === 0;
    return this.#runningSteps.count > 0 || !isUseful ? null : blockAccess;
  }

  #makeCopies(): void {
    const copies = this.#kvCache.drainCopies();
    if (copies !== null) this.#executor.copyBlocks(copies.source, copies.target);
  }
}
