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

  /** The sequence with at least `length` tokens. Tokens beyond its end are new, and below 0, unlike any prompt's. */
  continued(sequence: Int32Array, length: number): Int32Array {
    if (length <= sequence.length) return sequence;
    const longer = new Int32Array(Math.max(length, 2 * sequence.length));
    longer.set(sequence);
    for (let index = sequence.length; index < longer.length; index += 1) {
      this.#numDrawn += 1;
      longer[index] = -this.#numDrawn;
    }
    return longer;
  }
}
