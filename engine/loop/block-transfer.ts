import type { PromptBlocks } from '../../kvcache/block-hashes.js';
import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { BlockAccess, Executor } from '../executors/executor.js';
import type { RunningSteps } from './iteration.js';

/** Whether blocks can be moved at all: an executor gives them, and they hold something. */
export function canMove(access: BlockAccess | undefined): boolean {
  return access !== undefined && access.bytesPerBlock > 0;
}

/**
 * Moves cached blocks out of this engine, and those of equal engines into it. Called between two iterations. A model with states begins
 * a prompt only behind blocks whose states it has: the blocks up to a snapshot are moved, and the snapshot behind them.
 *
 *   bytes   | block 0 | block 1 | ... | block n - 1 |                     bytesPerBlock each
 *   state   | the states behind block n - 1 |                             of a model that has states
 */
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
   * The content of the cached full blocks that another engine may find of the prompt, and behind it that of the states behind them, of as many as fit
   * into `maxBytes`. Empty where there are none, where the executor gives none, and while a step runs beside the loop.
   */
  read(prompt: PromptBlocks, maxBytes: number): Uint8Array<ArrayBuffer> {
    const access = this.#access();
    if (access === null) return new Uint8Array(0);
    const { bytesPerBlock, states } = access;
    const stateBytes = states?.bytesPerSlot ?? 0;
    const most = Math.floor(Math.max(0, maxBytes - stateBytes) / bytesPerBlock);
    const { blocks, state } = this.#usable(prompt, most * this.#kvCache.tokensPerBlock);
    if (blocks.length === 0) return new Uint8Array(0);
    const blockBytes = blocks.length * bytesPerBlock;
    const bytes = new Uint8Array(blockBytes + stateBytes);
    this.#makeCopies();
    access.readBlocks(blocks, bytes.subarray(0, blockBytes));
    states?.readStates(Int32Array.of(state), bytes.subarray(blockBytes));
    return bytes;
  }

  /** False where the executor gives no blocks, or not at the moment. */
  get canRead(): boolean {
    return this.#access() !== null;
  }

  /** The content of these blocks, and behind it that of these slots for states. Only where canRead is true. */
  readContents(blocks: readonly number[], slots: readonly number[]): Uint8Array<ArrayBuffer> {
    const access = this.#access()!;
    const { states } = access;
    const blockBytes = blocks.length * access.bytesPerBlock;
    const bytes = new Uint8Array(blockBytes + slots.length * (states?.bytesPerSlot ?? 0));
    this.#makeCopies();
    if (blocks.length > 0) access.readBlocks(Int32Array.from(blocks), bytes.subarray(0, blockBytes));
    if (slots.length > 0) states!.readStates(Int32Array.from(slots), bytes.subarray(blockBytes));
    return bytes;
  }

  /** Number of full blocks, from the start of the prompt on, that need not be brought: a prompt can begin behind them. */
  count(prompt: PromptBlocks): number {
    return this.#access() === null ? 0 : this.#usable(prompt).blocks.length;
  }

  /**
   * Makes full blocks of the prompt, from number `first` on, cached ones, with content that `read` of an equal engine gave.
   * Returns how many of these blocks the cache has now; 0 where the bytes are no whole blocks. Content that is not finite
   * is not kept: it would fail every later request of the prompt.
   * @param state the states behind the last of these blocks; null: they come later, or the model has none
   */
  write(prompt: PromptBlocks, first: number, bytes: Uint8Array, state: Uint8Array | null = null): number {
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
    const end = (first + count) * tokensPerBlock;
    const has = this.#kvCache.cachedBlocks(prompt, end).length;
    if (state !== null && has === first + count) this.#writeState(access, prompt, end, state);
    return Math.max(0, has - first);
  }

  /** Makes the states behind the prompt's first `length` tokens a snapshot, unless there is one or they are not finite. */
  #writeState({ states }: BlockAccess, prompt: PromptBlocks, length: number, bytes: Uint8Array): void {
    if (states === undefined || bytes.length !== states.bytesPerSlot) return;
    this.#kvCache.adoptState(prompt, length, (slot) => {
      const slots = Int32Array.of(slot);
      states.writeStates(slots, bytes);
      return this.#executor.areStatesFinite!(slots);
    });
  }

  /**
   * The blocks that a prompt can begin behind, as far as they lie within `limit` tokens, and the slot of the states behind the last one;
   * -1: the model has no states. The last token is always computed, for its logits.
   */
  #usable(prompt: PromptBlocks, limit = Number.POSITIVE_INFINITY): { blocks: Int32Array; state: number } {
    return this.#kvCache.usableBlocks(prompt, Math.min(limit, prompt.tokens.length - 1));
  }

  #access(): BlockAccess | null {
    const { blockAccess } = this.#executor;
    const isUseful = this.#kvCache.enableBlockReuse && canMove(blockAccess);
    return this.#runningSteps.count > 0 || !isUseful ? null : blockAccess!;
  }

  #makeCopies(): void {
    const copies = this.#kvCache.drainCopies();
    if (copies !== null) this.#executor.copyBlocks(copies.source, copies.target);
    const states = this.#kvCache.states?.drainCopies() ?? null;
    if (states !== null) this.#executor.copyStates!(states.source, states.target);
  }
}
