/** Deepest nesting of lists and objects: more than any schema or template needs, and too little to fill a stack. */
export const MAX_JSON_DEPTH = 200;
/**
 * Most values in one body, each counted by the work that it makes: several times the token ids of a long prompt, or
 * some nine thousand messages. The worst bodies take the parser some 30 ms.
 */
export const MAX_JSON_VALUES = 500_000;

/**
 * Work of a list, an object or a text in addition to the 1 that each item counts, by the parser's time: 30 ns
 * for a number, up to 1000 for a field's name that no other object has.
 */
export const LIST_COUNTS = 4;
export const TEXT_COUNTS = 8;
/** Work of a name, in addition to that of its text. */
const NAME_COUNTS = 8;
/** Bytes of a name that count 1 more: the parser looks up each name among all that it knows. */
const NAME_BYTES = 16;

const DOT = 0x2e;
const ZERO = 0x30;
const LOWER = 0x20;
const LETTER_E = 0x65;
/** Digits from which on a whole number may be beyond 2^53. */
const LONG_NUMBER = 16;
const isDigit = (byte: number) => byte >= ZERO && byte <= 0x39;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Bytes that are counted at once, in a millisecond or two. */
export const SLICE = 2 ** 20;
/** Bytes of a text that are looked at one by one before its end is searched for: most texts are as short. */
const SHORT_TEXT = 32;

/** Numbers of a JSON text's parts. */
export interface JsonCounts {
  values: number;
  /** Number of lists and objects. */
  containers: number;
  /** Number of fields of objects. */
  keys: number;
  /** Number of texts, names of fields included. */
  strings: number;
}

/**
 * Counts how deep a JSON text nests and how many values it has, without parsing it, slice by slice: the parser takes a
 * text whole, and code that works on its result recurses. Text that is not JSON is counted as if it were.
 */
export class JsonSize implements JsonCounts {
  depth = 0;
  values = 1;
  containers = 0;
  keys = 0;
  strings = 0;
  /** Number of bytes in names of fields. */
  keyBytes = 0;
  /** True where JavaScript may lose how a number or a name was written (see base/written-json.ts). */
  mayLoseForms = false;
  /** Number of bytes in the latest text. */
  #textBytes = 0;
  #open = 0;
  #isInText = false;
  #isEscaped = false;
  /** True where the latest text ends in a digit. */
  #endsInDigit = false;
  /** Bytes since the latest mark of punctuation. */
  #run = 0;

  /** Counts the next part of the text. */
  add(bytes: Uint8Array): void {
    let open = this.#open;
    let i = 0;
    if (this.#isInText) {
      i = this.#skipText(bytes, 0);
      this.#textBytes += i;
    }
    for (; i < bytes.length; i++) {
      const byte = bytes[i]!;
      if (byte === QUOTE) {
        this.strings++;
        this.#isInText = true;
        const end = this.#skipText(bytes, i + 1);
        this.#textBytes = end - i;
        i = end - 1;
        this.#endsInDigit = isDigit(bytes[end - 2]!);
        this.#run = 0;
      } else if (byte === COMMA) {
        this.values++;
        this.#run = 0;
      } else if (byte === COLON) {
        this.keys++;
        this.keyBytes += this.#textBytes;
        this.mayLoseForms ||= this.#endsInDigit;
        this.#run = 0;
      } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        open++;
        this.values++;
        this.containers++;
        if (open > this.depth) this.depth = open;
      } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) open--;
      else if (isDigit(byte)) {
        if (++this.#run >= LONG_NUMBER) this.mayLoseForms = true;
      } else if (byte === DOT) this.mayLoseForms ||= i + 1 === bytes.length || bytes[i + 1] === ZERO;
      else if ((byte | LOWER) === LETTER_E && this.#run > 0) this.mayLoseForms = true;
    }
    this.#open = open;
  }

  /**
   * Sum of the values' work: an item of a list or object counts 1, a list or an object 4 more, a text 8, a name 16 and
   * its length.
   */
  get work(): number {
    const { values, containers, strings, keys, keyBytes } = this;
    const ofNames = NAME_COUNTS * keys + Math.floor(keyBytes / NAME_BYTES);
    return values + LIST_COUNTS * containers + TEXT_COUNTS * strings + ofNames;
  }

  get isTooMuch(): boolean {
    return this.depth > MAX_JSON_DEPTH || this.work > MAX_JSON_VALUES;
  }

  /** Offset after a text that is open at `start`; the text may continue in the next slice. */
  #skipText(bytes: Uint8Array, start: number): number {
    let isEscaped = this.#isEscaped;
    let i = start;
    for (const short = Math.min(bytes.length, start + SHORT_TEXT); i < short; i++) {
      const byte = bytes[i]!;
      if (isEscaped) isEscaped = false;
      else if (byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE) return this.#endText(i);
    }
    // A quote ends the text unless an odd number of backslashes, counted from `from`, stand before it.
    let from = i;
    while (from < bytes.length) {
      const quote = bytes.indexOf(QUOTE, from);
      const end = quote < 0 ? bytes.length : quote;
      let backslashes = 0;
      while (end - backslashes > from && bytes[end - backslashes - 1] === BACKSLASH) backslashes++;
      // Backslashes that reach back to `from` continue those before it.
      const escapes = backslashes + (isEscaped && end - backslashes === from ? 1 : 0);
      isEscaped = escapes % 2 === 1;
      if (quote < 0) break;
      if (!isEscaped) return this.#endText(quote);
      isEscaped = false;
      from = quote + 1;
    }
    this.#isEscaped = isEscaped;
    return bytes.length;
  }

  #endText(quote: number): number {
    this.#isInText = false;
    this.#isEscaped = false;
    return quote + 1;
  }
}
