import type { BlockContents, OfferedBlocks } from '../../callbacks/worker-messages.js';
import type { PromptBlocks } from '../../kvcache/block-hashes.js';
import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { BlockAccess, Executor } from '../executors/executor.js';
import type { RunningSteps } from './iteration.js';

/** One of its own each time: its buffer may go to another thread. */
const nothing = (): BlockContents => ({ numBlocks: 0, bytes: new Uint8Array(0) });

/**
 * Whether blocks can be moved at all: an executor gives them, and they hold something, or there are states
 * after them.
 */
export function canMove(access: BlockAccess | undefined): boolean {
  return access !== undefined && (access.bytesPerBlock > 0 || access.states !== undefined);
}

/**
 * Moves cached blocks out of this engine, and those of equal engines into it. Called between two iterations. A model with states begins
 * a prompt only after blocks whose states it has: the blocks up to a snapshot are moved, and then the
 * snapshot.
 *
 *   bytes   | block 0 | block 1 | ... | block n - 1 |                     bytesPerBlock each
 *   state   | the states after block n - 1  |                             of a model that has states
 *
 * Where no layer attends, blocks have no bytes; the tree counts them all the same, and the states are moved alone.
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
   * The content of the cached full blocks that another engine may find of the prompt, followed by that of the
   * states after them, of as many as fit into `maxBytes`. None where there are none, where the executor gives
   * none, and while a step runs in parallel with the loop.
   */
  read(prompt: PromptBlocks, maxBytes: number): BlockContents {
    const access = this.#access();
    const room = maxBytes - (access?.states?.bytesPerSlot ?? 0);
    if (access === null || room < 0) return nothing();
    const { bytesPerBlock, states } = access;
    const most = bytesPerBlock === 0 ? Number.POSITIVE_INFINITY : Math.floor(room / bytesPerBlock);
    const { blocks, state } = this.#usable(prompt, most * this.#kvCache.tokensPerBlock);
    if (blocks.length === 0) return nothing();
    const bytes = this.readContents(blocks, states === undefined ? [] : [state]);
    return { numBlocks: blocks.length, bytes };
  }

  /** False where the executor gives no blocks, or not at the moment. */
  get canRead(): boolean {
    return this.#access() !== null;
  }

  /** The content of these blocks, followed by that of these slots for states. Only where canRead is true. */
  readContents(blocks: ArrayLike<number>, slots: readonly number[]): Uint8Array<ArrayBuffer> {
    const access = this.#access()!;
    const { states } = access;
    const blockBytes = blocks.length * access.bytesPerBlock;
    const bytes = new Uint8Array(blockBytes + slots.length * (states?.bytesPerSlot ?? 0));
    this.#makeCopies();
    if (blockBytes > 0) access.readBlocks(Int32Array.from(blocks), bytes.subarray(0, blockBytes));
    if (slots.length > 0) states!.readStates(Int32Array.from(slots), bytes.subarray(blockBytes));
    return bytes;
  }

  /**
   * Number of full blocks, from the start of the prompt on, that need not be brought: a prompt can begin
   * after them.
   */
  count(prompt: PromptBlocks): number {
    return this.#access() === null ? 0 : this.#usable(prompt).blocks.length;
  }

  /**
   * Makes full blocks of the prompt cached ones, with content that `read` of an equal engine gave. Returns how many of these blocks the cache has now; 0 where the bytes are no whole blocks. Content that is not finite
   * is not kept: it would fail every later request of the prompt.
   */
  write(prompt: PromptBlocks, { first, numBlocks: count, bytes, state }: OfferedBlocks): number {
    const access = this.#access();
    if (access === null || bytes.length !== count * access.bytesPerBlock) return 0;
    const adopted = this.#kvCache.adoptBlocks(prompt, first, count);
    // Blocks that were evicted for it may have to be swapped out before they are written over.
    this.#makeCopies();
    if (adopted.blocks.length > 0 && access.bytesPerBlock > 0) {
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

  /**
   * Makes the states after the prompt's first `length` tokens a snapshot, unless there is one or they are not
   * finite.
   */
  #writeState({ states }: BlockAccess, prompt: PromptBlocks, length: number, bytes: Uint8Array): void {
    if (states === undefined || bytes.length !== states.bytesPerSlot) return;
    this.#kvCache.adoptState(prompt, length, (slot) => {
      const slots = Int32Array.of(slot);
      states.writeStates(slots, bytes);
      return this.#executor.areStatesFinite!(slots);
    });
  }

  /**
   * The blocks that a prompt can begin after, as far as they lie within `limit` tokens, and the slot of the
   * states after the last one;
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
