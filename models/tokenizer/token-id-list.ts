const FIRST_LENGTH = 64;

/** A growing list of token ids, four bytes each. */
export class TokenIdList {
  #ids = new Int32Array(FIRST_LENGTH);
  #length = 0;

  push(id: number): void {
    if (this.#length === this.#ids.length) {
      const longer = new Int32Array(2 * this.#length);
      longer.set(this.#ids);
      this.#ids = longer;
    }
    this.#ids[this.#length++] = id;
  }

  /** The first id; undefined where the list is empty. */
  get first(): number | undefined {
    return this.#length === 0 ? undefined : this.#ids[0];
  }

  /** All ids between a prefix and a suffix, in a new array. */
  between(prefix: readonly number[], suffix: readonly number[]): Int32Array {
    const all = new Int32Array(prefix.length + this.#length + suffix.length);
    all.set(prefix);
    all.set(this.#ids.subarray(0, this.#length), prefix.length);
    all.set(suffix, prefix.length + this.#length);
    return all;
  }
}
