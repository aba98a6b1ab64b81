import type { Detokenizer, TextCodec } from '../text-model.js';
import { PlainParser, ReasoningParser, type ReasoningStart } from './reasoning-parser.js';

/** Counts the tokens of an answer that are reasoning, its markers included. */
export class ReasoningCounter {
  readonly #detokenizer: Detokenizer;
  readonly #parser: ReasoningParser;
  /** Number of tokens that may yet prove to be reasoning. */
  #undecided = 0;
  #count = 0;
  #isOver = false;

  constructor(codec: TextCodec, start: ReasoningStart) {
    this.#detokenizer = codec.createDetokenizer({ skipSpecialTokens: false });
    this.#parser = new ReasoningParser(start, new PlainParser());
  }

  get count(): number {
    return this.#count;
  }

  push(tokens: Iterable<number>): void {
    for (const token of tokens) {
      if (this.#isOver) return;
      const before = this.#parser.isReasoning;
      this.#parser.push(this.#detokenizer.push([token]));
      const after = this.#parser.isReasoning;
      this.#undecided++;
      if (before === true || after === true) {
        this.#count += this.#undecided;
        this.#undecided = 0;
      }
      this.#isOver = after === false;
    }
  }
}
