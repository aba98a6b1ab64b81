/**
 * Blocks handed out that nothing has been written to yet. The executor zeroes the K and V of each before it writes, so
 * that no value of an earlier sequence (a NaN, say) can reach a later one. A block is zeroed in the step that first
 * writes to it: a long prompt takes all its blocks at once, and zeroing them all in its first step would keep everybody
 * waiting. Each block is listed once, even if it was given back and handed out again in between.
 *
 *   blocks of a prompt   [ 4 | 7 | 2 | 9 | 5 ]      new
 *   step 1 writes to       4   7                    4 and 7 are zeroed
 *   step 2 writes to           7   2                2 is
 */
export class NewBlocks {
  readonly #blocks: Int32Array;
  /** Place of each block in the list, or -1. */
  readonly #places: Int32Array;
  #count = 0;

  constructor(numBlocks: number) {
    this.#blocks = new Int32Array(numBlocks);
    this.#places = new Int32Array(numBlocks).fill(-1);
  }

  get count(): number {
    return this.#count;
  }

  add(block: number): void {
    if (this.#places[block]! >= 0) return;
    this.#places[block] = this.#count;
    this.#blocks[this.#count] = block;
    this.#count += 1;
  }

  /**
   * Takes the block from the list: its content is wanted, so it must not be zeroed. A block numbered after
   * the pool is never listed.
   */
  remove(block: number): void {
    const place = this.#places[block] ?? -1;
    if (place < 0) return;
    this.#places[block] = -1;
    this.#count -= 1;
    if (place === this.#count) return;
    const moved = this.#blocks[this.#count]!;
    this.#blocks[place] = moved;
    this.#places[moved] = place;
  }

  /**
   * Writes the new blocks among those of the given slots into target, forgets them, and returns how many there were.
   */
  drainWritten(slots: Int32Array, tokensPerBlock: number, target: Int32Array): number {
    let count = 0;
    for (let i = 0; i < slots.length; i++) {
      const block = Math.floor(slots[i]! / tokensPerBlock);
      // A block numbered after the pool is never new.
      if ((this.#places[block] ?? -1) < 0) continue;
      this.remove(block);
      target[count++] = block;
    }
    return count;
  }

  /** Writes the blocks into target, forgets them, and returns how many there were. */
  drain(target: Int32Array): number {
    const count = this.#count;
    if (count > target.length) {
      throw new RangeError(`${count} new KV cache blocks do not fit into an array of ${target.length}.`);
    }
    for (let index = 0; index < count; index += 1) {
      const block = this.#blocks[index]!;
      target[index] = block;
      this.#places[block] = -1;
    }
    this.#count = 0;
    return count;
  }
}
