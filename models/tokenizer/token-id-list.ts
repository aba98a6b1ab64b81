const FIRST_LENGTH = 64;

/** A growing list of token ids, four bytes each. */
export class TokenIdList {
  #ids = new Int32Array(FIRST_LENGTH);
  #length = 0;

  push(id: number): void {
    if (this.#length === this.#ids.length) this.#lengthen(this.#length + 1);
    this.#ids[this.#length++] = id;
  }

  /** Adds ids, which may be some of this list's own. */
  append(ids: Int32Array): void {
    if (this.#length + ids.length > this.#ids.length) this.#lengthen(this.#length + ids.length);
    this.#ids.set(ids, this.#length);
    this.#length += ids.length;
  }

  get length(): number {
    return this.#length;
  }

  /** Ids from one place to another, for reading until the list grows. */
  view(start: number, end: number): Int32Array {
    return this.#ids.subarray(start, Math.min(end, this.#length));
  }

  #lengthen(least: number): void {
    const longer = new Int32Array(Math.max(least, 2 * this.#ids.length));
    longer.set(this.#ids);
    this.#ids = longer;
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
