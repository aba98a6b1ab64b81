/** Ids of a word: one, as most words have, or a list. */
export type WordIds = number | readonly number[];

/** Longest word that is remembered, in UTF-16 units. */
const MAX_UNITS = 64;
/** Most ids of a word that is remembered. */
const MAX_IDS = 16;
/** Words of a generation. Two generations of the longest ones take 7 MB. */
const MAX_WORDS = 8192;
/** V8 makes a slice of this many units a view of the text that it was cut from, which would be kept with it. */
const MIN_VIEW = 13;

/**
 * Ids of words that were encoded lately, in two generations: where the younger one is full, it becomes the older one, whose words are
 * forgotten. A word that is found in the older one moves to the younger.
 */
export class WordMemory {
  #young = new Map<string, WordIds>();
  #old = new Map<string, WordIds>();

  get(word: string): WordIds | undefined {
    const known = this.#young.get(word);
    if (known !== undefined) return known;
    const older = this.#old.get(word);
    if (older !== undefined) this.#add(word, older);
    return older;
  }

  /** Remembers a word, unless it is long. */
  set(word: string, ids: WordIds): void {
    if (word.length <= MAX_UNITS && (typeof ids === 'number' || ids.length <= MAX_IDS)) this.#add(word, ids);
  }

  /** Number of words in it. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  #add(word: string, ids: WordIds): void {
    if (this.#young.size >= MAX_WORDS) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    // Joined and cut again, a word is a view of a text of its own.
    this.#young.set(word.length < MIN_VIEW ? word : ` ${word}`.slice(1), ids);
  }
}
