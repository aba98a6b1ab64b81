/**
 * Blocks of the KV pool by number: a stack of free ones and a reference count for each, all in typed arrays that are
 * made once. Every operation is O(1).
 *
 *   free     [ 7 6 3 | . . . . . ]     numFree = 3; the next one handed out is 3
 *   counts   0:1 1:1 2:2 3:0 4:1 5:1 6:0 7:0
 *
 * A stack hands out the block that came back last, so memory that was never touched stays untouched as long as
 * possible (the pool's pages are committed on first touch).
 */
export class BlockPool {
  readonly numBlocks: number;
  readonly #firstBlock: number;
  readonly #free: Int32Array;
  #numFree: number;
  readonly #referenceCounts: Int32Array;

  /** @param firstBlock number of the first block, so that a second pool can be numbered after the first */
  constructor(numBlocks: number, firstBlock = 0) {
    this.numBlocks = numBlocks;
    this.#firstBlock = firstBlock;
    this.#free = Int32Array.from({ length: numBlocks }, (_, index) => firstBlock + numBlocks - 1 - index);
    this.#numFree = numBlocks;
    this.#referenceCounts = new Int32Array(numBlocks);
  }

  get freeBlocks(): number {
    return this.#numFree;
  }

  /** Takes a block and gives it one reference. The caller has made sure that one is free. */
  take(): number {
    if (this.#numFree === 0) {
      throw new Error(
        `All ${this.numBlocks} KV cache blocks are taken; the caller has to ask freeBlocks first.`,
      );
    }
    this.#numFree -= 1;
    const block = this.#free[this.#numFree]!;
    this.#referenceCounts[block - this.#firstBlock] = 1;
    return block;
  }

  references(block: number): number {
    return this.#referenceCounts[block - this.#firstBlock]!;
  }

  /** Adds a reference to a block that is not in the free list: it is held, or kept in the prefix tree. */
  reference(block: number): void {
    this.#referenceCounts[block - this.#firstBlock]! += 1;
  }

  /** Removes one reference and returns how many are left. With none left the caller frees the block or keeps it. */
  unreference(block: number): number {
    const count = this.#referenceCounts[block - this.#firstBlock];
    if (count === undefined || count === 0) {
      throw new Error(`KV cache block ${block} is released, but no sequence holds it.`);
    }
    this.#referenceCounts[block - this.#firstBlock] = count - 1;
    return count - 1;
  }

  /** Puts a block without references on the free list. */
  free(block: number): void {
    this.#free[this.#numFree] = block;
    this.#numFree += 1;
  }

  /** Removes one reference; the block is free again once none is left. */
  release(block: number): void {
    if (this.unreference(block) === 0) this.free(block);
  }

  /** Views for the integrity check: the free blocks and every block's reference count. */
  inspect(): { free: Int32Array; referenceCounts: Int32Array } {
    return { free: this.#free.subarray(0, this.#numFree), referenceCounts: this.#referenceCounts };
  }
}
