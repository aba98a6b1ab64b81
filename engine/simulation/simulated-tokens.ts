/** Makes up the tokens of a simulation's requests, so that they are equal exactly where they should be. */
export class SimulatedTokens {
  #positions = new Int32Array(0);
  #numDrawn = 0;

  /**
   * The tokens 0, 1, 2, ..., at least `length` of them: for sequences that a salt of their own keeps apart from all
   * others.
   */
  positions(length: number): Int32Array {
    if (length > this.#positions.length) {
      const grown = Math.max(length, 2 * this.#positions.length);
      this.#positions = Int32Array.from({ length: grown }, (_, index) => index);
    }
    return this.#positions;
  }

  /**
   * The sequence with at least `length` tokens, in its own array where that has room for them. Those after
   * the first `numKnown` are new, up to the array's end, and below 0, unlike any prompt's.
   */
  continued(sequence: Int32Array, numKnown: number, length: number): Int32Array {
    let longer = sequence;
    if (length > sequence.length) {
      longer = new Int32Array(Math.max(length, 2 * numKnown));
      longer.set(sequence.subarray(0, numKnown));
    }
    for (let index = numKnown; index < longer.length; index += 1) {
      this.#numDrawn += 1;
      longer[index] = -this.#numDrawn;
    }
    return longer;
  }
}
