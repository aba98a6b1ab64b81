/**
 * The words that a request must not generate. A word of several tokens is not banned as such: its last token is, where
 * the tokens before it are there already, those of the prompt included (as in Hugging Face's bad_words_ids).
 *
 *   words 5 | 7 3 9      tokens ... 2 4      banned 5
 *                        tokens ... 7 3      banned 5 9
 */
export class BadWords {
  /** Words of one token. */
  readonly single: Int32Array;
  /** Words of several tokens by the one before their last. */
  readonly #byPenultimate = new Map<number, Int32Array[]>();

  /** `words`: none of them empty, tokens inside the vocabulary. */
  constructor(words: readonly Int32Array[]) {
    this.single = Int32Array.from(new Set(words.filter((word) => word.length === 1).map((word) => word[0]!)));
    for (const word of words) {
      if (word.length === 1) continue;
      const penultimate = word.at(-2)!;
      const others = this.#byPenultimate.get(penultimate);
      if (others) others.push(word);
      else this.#byPenultimate.set(penultimate, [word]);
    }
  }

  /** Calls `ban` with the last token of each word of several tokens that tokens[0 .. length) is about to complete. */
  forEachCompletion(tokens: Int32Array, length: number, ban: (token: number) => void): void {
    const words = this.#byPenultimate.get(tokens[length - 1]!);
    if (words === undefined) return;
    for (const word of words) {
      const first = length - (word.length - 1);
      if (first < 0) continue;
      let i = 0;
      while (i < word.length - 1 && tokens[first + i] === word[i]) i++;
      if (i === word.length - 1) ban(word[i]!);
    }
  }
}
