import { decodeUtf8, type Tokenizer } from './tokenizer.js';
import { decodableUtf8Length } from './utf8.js';

export interface StreamingDetokenizerOptions {
  /** Leaves special tokens out of the text. Default true. */
  skipSpecialTokens?: boolean;
  /** Ids of special tokens that stay in the text all the same. */
  shownTokens?: ReadonlySet<number>;
  /** Texts that stand for special tokens in place of their own, by id. */
  marks?: ReadonlyMap<number, string>;
  /**
   * True where the tokens continue a text (a completion): with SentencePiece models the space before the first word
   * then belongs to the text. Default false: the tokens stand by themselves, as in Tokenizer.decode.
   */
  continuesText?: boolean;
}

/**
 * Turns the tokens of one sequence into text as they come. A character whose bytes are spread over several tokens is
 * held back until it is whole; the joined output equals Tokenizer.decode of all the tokens.
 */
export class StreamingDetokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #skipSpecialTokens: boolean;
  readonly #shownTokens: ReadonlySet<number>;
  readonly #marks: ReadonlyMap<number, string>;
  /** Bytes of an unfinished character, at most 3. */
  #pending = new Uint8Array(0);
  #dropSpace: boolean;

  constructor(tokenizer: Tokenizer, options: StreamingDetokenizerOptions = {}) {
    this.#tokenizer = tokenizer;
    this.#skipSpecialTokens = options.skipSpecialTokens ?? true;
    this.#shownTokens = options.shownTokens ?? new Set();
    this.#marks = options.marks ?? new Map();
    this.#dropSpace = tokenizer.dropsLeadingSpace && !(options.continuesText ?? false);
  }

  /** Takes tokens and returns the text that they complete, which may be empty. */
  push(tokens: Iterable<number>): string {
    let text = '';
    for (const id of tokens) {
      const mark = this.#marks.get(id);
      if (mark !== undefined) {
        text += this.flush() + mark;
        continue;
      }
      const isSkipped = this.#skipSpecialTokens && this.#tokenizer.specialTokenIds.has(id);
      if (isSkipped && !this.#shownTokens.has(id)) continue;
      text += this.#pushOne(id);
    }
    return text;
  }

  /** Ends the sequence: an unfinished character becomes U+FFFD. */
  flush(): string {
    const rest = decodeUtf8(this.#pending);
    this.#pending = new Uint8Array(0);
    return rest;
  }

  #pushOne(id: number): string {
    // Most tokens are whole characters by themselves: one table look-up suffices.
    if (this.#pending.length === 0) {
      const whole = this.#tokenizer.tokenText(id);
      if (whole !== null) return this.#withoutLeadingSpace(whole);
    }
    const bytes = this.#tokenizer.tokenBytes(id);
    const joined = new Uint8Array(this.#pending.length + bytes.length);
    joined.set(this.#pending);
    joined.set(bytes, this.#pending.length);
    const ready = decodableUtf8Length(joined, joined.length);
    this.#pending = joined.slice(ready);
    return this.#withoutLeadingSpace(decodeUtf8(joined.subarray(0, ready)));
  }

  #withoutLeadingSpace(text: string): string {
    if (!this.#dropSpace || text.length === 0) return text;
    this.#dropSpace = false;
    return text.startsWith(' ') ? text.slice(1) : text;
  }
}
