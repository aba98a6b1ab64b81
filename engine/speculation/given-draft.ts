const NOTHING = new Int32Array(0);

/**
 * The draft that a request brings: tokens that may follow its prompt. It is of use as long as the generated tokens
 * equal it; with the first token that differs it is over.
 *
 *   draft      5 7 9 4
 *   generated  5 7          what is left: 9 4
 *   generated  5 8          nothing
 */
export class GivenDraft {
  readonly #draft: Int32Array;
  /** Number of generated tokens that are known to equal the draft's. */
  #matching = 0;
  #isOver = false;

  constructor(draft: Int32Array) {
    this.#draft = draft;
  }

  /** The part of the draft that may follow the first `length` of these tokens, those of the prompt included. */
  rest(tokens: Int32Array, promptLength: number, length: number): Int32Array {
    const generated = length - promptLength;
    while (!this.#isOver && this.#matching < generated) {
      const expected = this.#draft[this.#matching];
      this.#isOver = expected === undefined || tokens[promptLength + this.#matching] !== expected;
      if (!this.#isOver) this.#matching++;
    }
    return this.#isOver ? NOTHING : this.#draft.subarray(generated);
  }
}
