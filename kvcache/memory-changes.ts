import { NewBlocks } from './new-blocks.js';

/** Whole blocks to be copied, source[i] -> target[i], in this order. */
export interface BlockCopies {
  source: Int32Array;
  target: Int32Array;
}

/** Copies that are decided one after the other, and made in this order. */
export class CopyList {
  #sources: number[] = [];
  #targets: number[] = [];

  /** Gives the target the content of the source. */
  add(source: number, target: number): void {
    this.#sources.push(source);
    this.#targets.push(target);
  }

  /** The copies since the last call, or null. */
  drain(): BlockCopies | null {
    if (this.#sources.length === 0) return null;
    const copies = { source: Int32Array.from(this.#sources), target: Int32Array.from(this.#targets) };
    this.#sources = [];
    this.#targets = [];
    return copies;
  }
}

/**
 * Changes that the executor makes to its memory before the next step, in this order: the copies as they were decided,
 * then the zeroing of new blocks, then the step's own writes. The manager hands out numbers long before memory moves,
 * so a block's content at any place in the list is what all earlier entries made of it. An example with a primary pool
 * of blocks 0 to 9, a secondary one of 10 to 13, and a prompt that finds the swapped-out 12 and the beginning of the
 * cached 4:
 *
 *   decided                                       copies, in this order
 *   2 is evicted, worth keeping: swapped out      2 -> 10
 *   12 is swapped in to 2; 12 is free             12 -> 2      reads 12 before anything is put there
 *   7 is evicted and swapped out                  7 -> 12
 *   7 takes the beginning of 4 (partial reuse)    4 -> 7
 *   4 is evicted for good, handed out as new      none: zeroed after all copies, so 7 has got what it needs
 *
 * All changes for one step are made before that step and after the step before it, so nothing moves under a forward.
 */
export class MemoryChanges {
  readonly #newBlocks: NewBlocks;
  readonly #copies = new CopyList();

  constructor(numBlocks: number) {
    this.#newBlocks = new NewBlocks(numBlocks);
  }

  /** Marks the block as new: none of its former content may be read. */
  zero(block: number): void {
    this.#newBlocks.add(block);
  }

  /** Keeps the block's content as it is. */
  keep(block: number): void {
    this.#newBlocks.remove(block);
  }

  /** Gives the target the content of the source. */
  copy(source: number, target: number): void {
    this.keep(target);
    this.#copies.add(source, target);
  }

  /** Writes the blocks to be zeroed into target, each once, forgets them, and returns how many there were. */
  drainNewBlocks(target: Int32Array): number {
    return this.#newBlocks.drain(target);
  }

  /** Like drainNewBlocks, but only for blocks that the step which writes to these slots is the first to write to. */
  drainWrittenBlocks(slots: Int32Array, tokensPerBlock: number, target: Int32Array): number {
    return this.#newBlocks.drainWritten(slots, tokensPerBlock, target);
  }

  /** The copies since the last call, or null. */
  drainCopies(): BlockCopies | null {
    return this.#copies.drain();
  }
}
