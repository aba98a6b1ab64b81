import { NewBlocks } from './new-blocks.js';

/** Whole blocks to be copied, source[i] -> target[i], in this order. */
export interface BlockCopies {
  source: Int32Array;
  target: Int32Array;
}

/**
 * What the executor has to do to its memory before the next step, in this order: the copies as they were decided, then
 * the zeroing of new blocks, then the step's own writes. The manager hands out numbers long before memory moves, so a
 * block's content at any place in the list is what all entries before it made of it:
 *
 *   copy 4 -> 9     9 gets the beginning of 4
 *   (4 is evicted and handed out as new: listed to be zeroed, which is after every copy)
 */
export class MemoryChanges {
  readonly #newBlocks: NewBlocks;
  #copySources: number[] = [];
  #copyTargets: number[] = [];

  constructor(numBlocks: number) {
    this.#newBlocks = new NewBlocks(numBlocks);
  }

  /** The block is new: nothing of what it held may be read. */
  zero(block: number): void {
    this.#newBlocks.add(block);
  }

  /** The block's content is wanted as it is. */
  keep(block: number): void {
    this.#newBlocks.remove(block);
  }

  /** The target gets the content of the source. */
  copy(source: number, target: number): void {
    this.#newBlocks.remove(target);
    this.#copySources.push(source);
    this.#copyTargets.push(target);
  }

  /** Writes the blocks to be zeroed into target, each once, forgets them, and returns how many they were. */
  drainNewBlocks(target: Int32Array): number {
    return this.#newBlocks.drain(target);
  }

  /** The copies since the last call, or null. */
  drainCopies(): BlockCopies | null {
    if (this.#copySources.length === 0) return null;
    const copies = { source: Int32Array.from(this.#copySources), target: Int32Array.from(this.#copyTargets) };
    this.#copySources = [];
    this.#copyTargets = [];
    return copies;
  }
}
