/** Role of a character in a JSON value. */
export type Scan =
  /** Part of the value, which is not complete yet. */
  | 'more'
  /** The last character of the value. */
  | 'last'
  /** The character after the value, where alone a number ends. */
  | 'behind'
  /** No JSON value continues like this. */
  | 'invalid';

const SPACE = /^[ \t\n\r]$/;
const LITERALS: Readonly<Record<string, string>> = { t: 'true', f: 'false', n: 'null' };
/** Patterns of a number's beginning, and of a whole number. */
const NUMBER_PREFIX = /^-?(?:0|[1-9]\d*)?(?:(?<=\d)\.\d*)?(?:(?<=\d)[eE][+-]?\d*)?$/;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const MAX_NUMBER_LENGTH = 400;

/**
 * Reads one JSON value character by character, and reports where it ends. White space in front counts as part
 * of it.
 */
export class JsonScanner {
  /** '{' or '[' of each object and list that is open. */
  readonly #open: string[] = [];
  #expects: 'value' | 'item-or-end' | 'key' | 'key-or-end' | 'colon' | 'comma-or-end' = 'value';
  /** Kind of token that the scanner is inside of; in an escape, #hexLeft counts the digits still to come. */
  #inside: 'nothing' | 'text' | 'escape' | 'number' | 'word' = 'nothing';
  #isKey = false;
  #hexLeft = 0;
  /** Rest of a word, or the number so far. */
  #token = '';

  step(character: string): Scan {
    switch (this.#inside) {
      case 'text':
        return this.#inText(character);
      case 'escape':
        return this.#inEscape(character);
      case 'word':
        if (!this.#token.startsWith(character)) return 'invalid';
        this.#token = this.#token.slice(1);
        return this.#token === '' ? this.#valueEnds() : 'more';
      case 'number':
        return this.#inNumber(character);
      case 'nothing':
        return SPACE.test(character) ? 'more' : this.#between(character);
    }
  }

  #between(character: string): Scan {
    switch (this.#expects) {
      case 'value':
        return this.#begin(character);
      case 'item-or-end':
        return character === ']' ? this.#close(character) : this.#begin(character);
      case 'key-or-end':
        return character === '}' ? this.#close(character) : this.#beginKey(character);
      case 'key':
        return this.#beginKey(character);
      case 'colon':
        this.#expects = 'value';
        return character === ':' ? 'more' : 'invalid';
      case 'comma-or-end':
        if (character !== ',') return this.#close(character);
        this.#expects = this.#open.at(-1) === '{' ? 'key' : 'value';
        return 'more';
    }
  }

  #begin(character: string): Scan {
    if (character === '{' || character === '[') {
      this.#open.push(character);
      this.#expects = character === '{' ? 'key-or-end' : 'item-or-end';
    } else if (character === '"') {
      this.#inside = 'text';
      this.#isKey = false;
    } else if (character in LITERALS) {
      this.#inside = 'word';
      this.#token = LITERALS[character]!.slice(1);
    } else if (/^[-\d]$/.test(character)) {
      this.#inside = 'number';
      this.#token = character;
    } else return 'invalid';
    return 'more';
  }

  #beginKey(character: string): Scan {
    if (character !== '"') return 'invalid';
    this.#inside = 'text';
    this.#isKey = true;
    return 'more';
  }

  #close(character: string): Scan {
    const open = this.#open.pop();
    if (open === undefined || character !== (open === '{' ? '}' : ']')) return 'invalid';
    return this.#valueEnds();
  }

  #inText(character: string): Scan {
    if (character === '\\') this.#inside = 'escape';
    else if (character < ' ') return 'invalid';
    else if (character === '"') {
      if (!this.#isKey) return this.#valueEnds();
      this.#inside = 'nothing';
      this.#expects = 'colon';
    }
    return 'more';
  }

  #inEscape(character: string): Scan {
    if (this.#hexLeft > 0) {
      if (!/^[\da-fA-F]$/.test(character)) return 'invalid';
      if (--this.#hexLeft === 0) this.#inside = 'text';
      return 'more';
    }
    if (character === 'u') this.#hexLeft = 4;
    else if (!'"\\/bfnrt'.includes(character)) return 'invalid';
    else this.#inside = 'text';
    return 'more';
  }

  #inNumber(character: string): Scan {
    const longer = this.#token + character;
    if (longer.length <= MAX_NUMBER_LENGTH && NUMBER_PREFIX.test(longer)) {
      this.#token = longer;
      return 'more';
    }
    if (!NUMBER.test(this.#token)) return 'invalid';
    if (this.#valueEnds() === 'last') return 'behind';
    return SPACE.test(character) ? 'more' : this.#between(character);
  }

  #valueEnds(): Scan {
    this.#inside = 'nothing';
    this.#expects = 'comma-or-end';
    return this.#open.length === 0 ? 'last' : 'more';
  }
}
