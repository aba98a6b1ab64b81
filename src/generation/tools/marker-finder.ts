/**
 * Finds markers in a text that comes character by character, and holds back the longest end of it that could become one.
 *
 *   marker "<tool_call>"     "a"  ->  "a"      "<", "t"  ->  ""      "x"  ->  "<tx"
 */
export class MarkerFinder {
  readonly #markers: readonly string[];
  #held = '';

  /** @param markers none of them may begin with another one */
  constructor(markers: readonly string[]) {
    this.#markers = markers;
  }

  /**
   * Takes a character. `text`: text that is no part of a marker; `marker`: the marker completed by this character, or
   * null.
   */
  step(character: string): { text: string; marker: string | null } {
    // Most text has no beginning of a marker.
    if (this.#held === '' && !this.#markers.some((marker) => marker.startsWith(character))) {
      return { text: character, marker: null };
    }
    this.#held += character;
    let text = '';
    while (!this.#markers.some((marker) => marker.startsWith(this.#held))) {
      text += this.#held.charAt(0);
      this.#held = this.#held.slice(1);
    }
    const marker = this.#markers.includes(this.#held) ? this.#held : null;
    if (marker !== null) this.#held = '';
    return { text, marker };
  }

  /** Number of UTF-16 units held back. */
  get held(): number {
    return this.#held.length;
  }

  /** Returns the text held back. */
  flush(): string {
    const held = this.#held;
    this.#held = '';
    return held;
  }
}
