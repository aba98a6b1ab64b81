import { WordEndings } from './word-endings.js';

/**
 * Words that a request must not generate. A word of several tokens is not banned as a whole: its last token is, once
 * the tokens before it have been generated or stand in the prompt (as in Hugging Face's bad_words_ids).
 *
 *   words 5 | 7 3 9      tokens ... 2 4      banned 5
 *                        tokens ... 7 3      banned 5 9
 */
export class BadWords {
  /** Words of one token. */
  readonly single: Int32Array;
  /** Words of several tokens: this holds all their tokens but the last, #last the last. */
  readonly #beginnings: WordEndings;
  readonly #last: Int32Array;

  /** @param words none of them empty, with tokens inside the vocabulary */
  constructor(words: readonly Int32Array[]) {
    this.single = Int32Array.from(new Set(words.filter((word) => word.length === 1).map((word) => word[0]!)));
    const longer = words.filter((word) => word.length > 1);
    this.#beginnings = new WordEndings(longer.map((word) => word.subarray(0, -1)));
    this.#last = Int32Array.from(longer, (word) => word.at(-1)!);
  }

  /** Calls `ban` with the last token of each word of several tokens that tokens[0 .. length) is about to complete. */
  forEachCompletion(tokens: Int32Array, length: number, ban: (token: number) => void): void {
    this.#beginnings.forEach(tokens, length, (place) => ban(this.#last[place]!));
  }
}
