import { MarkerFinder } from '../tools/marker-finder.js';
import { HARMONY_TOKENS, type HarmonyToken, tokenOfMark } from './tokens.js';

/** Text, and the special token behind it. */
export interface Lexeme {
  text: string;
  token: HarmonyToken | null;
}

/** Tells the special tokens of an answer from its text, unit by unit. */
export class HarmonyLexer {
  readonly #isMarked: boolean;
  readonly #finder = new MarkerFinder(HARMONY_TOKENS);
  #isBehindHigh = false;

  /** @param isMarked true where units of their own stand for special tokens, false where these are spelled in the text */
  constructor(isMarked: boolean) {
    this.#isMarked = isMarked;
  }

  step(unit: string): Lexeme {
    if (!this.#isMarked) {
      const { text, marker } = this.#finder.step(unit);
      return { text, token: marker as HarmonyToken | null };
    }
    const token = this.#isBehindHigh ? null : tokenOfMark(unit);
    const code = unit.charCodeAt(0);
    this.#isBehindHigh = code >= 0xd800 && code < 0xdc00;
    return token === null ? { text: unit, token } : { text: '', token };
  }

  /** Number of units of text held back. */
  get held(): number {
    return this.#finder.held;
  }

  /** Returns the text held back. */
  flush(): string {
    return this.#finder.flush();
  }
}
