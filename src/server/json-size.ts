/** Levels of lists and objects in each other: more than any schema or template needs, less than fills a stack. */
export const MAX_JSON_DEPTH = 200;
/** Values in one body: several times the token ids of a long prompt. Parsing them takes some 20 ms. */
export const MAX_JSON_VALUES = 500_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Bytes that are looked at in one go: a millisecond or two. */
export const SLICE = 2 ** 20;

/** What a JSON text is made of. */
export interface JsonCounts {
  values: number;
  /** Lists and objects among them. */
  containers: number;
  /** Fields of objects. */
  keys: number;
  /** Texts, the names of fields included. */
  strings: number;
}

/**
 * How deep a JSON text nests, how many values it has and of what kinds, counted without parsing it, slice by slice: the
 * parser takes a text as a whole, and what works on its result recurses. Text that is not JSON is counted as if it were.
 */
export class JsonSize implements JsonCounts {
  depth = 0;
  values = 1;
  containers = 0;
  keys = 0;
  strings = 0;
  #open = 0;
  #isInText = false;
  #isEscaped = false;

  /** Counts the next part of the text. */
  add(bytes: Uint8Array): void {
    let isInText = this.#isInText;
    let isEscaped = this.#isEscaped;
    let open = this.#open;
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i]!;
      if (isInText) {
        if (isEscaped) isEscaped = false;
        else if (byte === BACKSLASH) isEscaped = true;
        else if (byte === QUOTE) {
          isInText = false;
          this.strings++;
        }
      } else if (byte === QUOTE) isInText = true;
      else if (byte === COMMA) this.values++;
      else if (byte === COLON) this.keys++;
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        open++;
        this.containers++;
        this.values++;
        if (open > this.depth) this.depth = open;
      } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) open--;
    }
    this.#isInText = isInText;
    this.#isEscaped = isEscaped;
    this.#open = open;
  }

  get isTooMuch(): boolean {
    return this.depth > MAX_JSON_DEPTH || this.values > MAX_JSON_VALUES;
  }
}
