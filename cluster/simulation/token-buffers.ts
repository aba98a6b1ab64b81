/**
 * Arrays of tokens that are used again: the garbage collector looks through all that a simulation holds each time some ten megabytes of new ones
 * have been made, which many thousand prompts are soon.
 */
export class TokenBuffers {
  readonly #free = new Map<number, Int32Array[]>();

  /** An array of this length, with any content. */
  take(length: number): Int32Array {
    return this.#free.get(length)?.pop() ?? new Int32Array(length);
  }

  /** The array is no longer used. */
  give(array: Int32Array): void {
    const free = this.#free.get(array.length);
    if (free === undefined) this.#free.set(array.length, [array]);
    else free.push(array);
  }
}
