/**
 * Blocks handed out since the last time they were drained. The executor zeroes their K and V before it writes, so
 * that no value of an earlier sequence (a NaN, say) can reach a later one. Each block is listed once, even if it was
 * given back and handed out again in between.
 */
export class NewBlocks {
  readonly #blocks: Int32Array;
  readonly #listed: Uint8Array;
  #count = 0;

  constructor(numBlocks: number) {
    this.#blocks = new Int32Array(numBlocks);
    this.#listed = new Uint8Array(numBlocks);
  }

  get count(): number {
    return this.#count;
  }

  add(block: number): void {
    if (this.#listed[block] === 1) return;
    this.#listed[block] = 1;
    this.#blocks[this.#count] = block;
    this.#count += 1;
  }

  /** Writes the blocks into target, forgets them, and returns how many they were. */
  drain(target: Int32Array): number {
    const count = this.#count;
    if (count > target.length) {
      throw new RangeError(`${count} new KV cache blocks do not fit into an array of ${target.length}.`);
    }
    for (let index = 0; index < count; index += 1) {
      const block = this.#blocks[index]!;
      target[index] = block;
      this.#listed[block] = 0;
    }
    this.#count = 0;
    return count;
  }
}
