import type { Scan } from './json-scanner.js';

/** Role of a character in the value, and the JSON that it adds. */
export interface PythonStep {
  scan: Scan;
  json: string;
}

const SPACE = /^\s$/;
const WORDS: Readonly<Record<string, string>> = {
  ...{ True: 'true', False: 'false', None: 'null' },
  // Models trained on JSON mix these up with Python's words.
  ...{ true: 'true', false: 'false', null: 'null' },
};
const NUMBER = /^([-+]?)(\d[\d_]*)?(?:\.([\d_]*))?(?:[eE]([-+]?\d+))?$/;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' };
const PLAIN_ESCAPES = '\\\'"/';
const CLOSERS: Readonly<Record<string, string>> = { '[': ']', '(': ')', '{': '}' };
const MAX_NUMBER_LENGTH = 400;

const more = (json: string): PythonStep => ({ scan: 'more', json });
const INVALID: PythonStep = { scan: 'invalid', json: '' };

interface Container {
  close: string;
  isDict: boolean;
  isEmpty: boolean;
}

/** Reads one Python literal character by character and writes it as JSON: tuples become lists, keys must be texts. */
export class PythonValue {
  readonly #open: Container[] = [];
  #expects: 'value' | 'item-or-end' | 'key-or-end' | 'colon' | 'comma-or-end' = 'value';
  #inside: 'nothing' | 'text' | 'escape' | 'hex' | 'number' | 'word' = 'nothing';
  #quote = '';
  #isKey = false;
  /** The number, word or hexadecimal digits so far. */
  #token = '';
  #hexLength = 0;

  step(character: string): PythonStep {
    switch (this.#inside) {
      case 'text':
        return this.#inText(character);
      case 'escape':
        return this.#inEscape(character);
      case 'hex':
        return this.#inHex(character);
      case 'number':
      case 'word':
        return this.#inToken(character);
      case 'nothing':
        return SPACE.test(character) ? more('') : this.#between(character);
    }
  }

  #between(character: string): PythonStep {
    const container = this.#open.at(-1);
    switch (this.#expects) {
      case 'value':
        return this.#begin(character, '');
      case 'colon':
        this.#expects = 'value';
        return character === ':' ? more(': ') : INVALID;
      case 'item-or-end':
      case 'key-or-end': {
        if (character === container!.close) return this.#close();
        const comma = container!.isEmpty ? '' : ', ';
        container!.isEmpty = false;
        if (this.#expects === 'item-or-end') return this.#begin(character, comma);
        this.#isKey = true;
        return character === '"' || character === "'" ? this.#beginText(character, comma) : INVALID;
      }
      case 'comma-or-end':
        if (character === container!.close) return this.#close();
        this.#expects = container!.isDict ? 'key-or-end' : 'item-or-end';
        return character === ',' ? more('') : INVALID;
    }
  }

  #begin(character: string, before: string): PythonStep {
    if (character in CLOSERS) {
      const isDict = character === '{';
      this.#open.push({ close: CLOSERS[character]!, isDict, isEmpty: true });
      this.#expects = isDict ? 'key-or-end' : 'item-or-end';
      return more(before + (isDict ? '{' : '['));
    }
    this.#isKey = false;
    if (character === '"' || character === "'") return this.#beginText(character, before);
    const isNumber = /^[-+.\d]$/.test(character);
    if (!isNumber && !/^[A-Za-z]$/.test(character)) return INVALID;
    this.#inside = isNumber ? 'number' : 'word';
    this.#token = character;
    return more(before);
  }

  #beginText(quote: string, before: string): PythonStep {
    this.#inside = 'text';
    this.#quote = quote;
    return more(`${before}"`);
  }

  #inText(character: string): PythonStep {
    if (character === '\\') {
      this.#inside = 'escape';
      return more('');
    }
    if (character === '\n') return INVALID;
    if (character !== this.#quote) return more(inJson(character));
    if (!this.#isKey) return this.#valueEnds('"');
    this.#inside = 'nothing';
    this.#expects = 'colon';
    return more('"');
  }

  #inEscape(character: string): PythonStep {
    this.#inside = 'text';
    if (character in ESCAPES) return more(inJson(ESCAPES[character]!));
    if (PLAIN_ESCAPES.includes(character)) return more(inJson(character));
    if (character !== 'u' && character !== 'x') return INVALID;
    this.#inside = 'hex';
    this.#token = '';
    this.#hexLength = character === 'u' ? 4 : 2;
    return more('');
  }

  #inHex(character: string): PythonStep {
    if (!/^[\da-fA-F]$/.test(character)) return INVALID;
    this.#token += character;
    if (this.#token.length < this.#hexLength) return more('');
    this.#inside = 'text';
    return more(inJson(String.fromCharCode(Number.parseInt(this.#token, 16))));
  }

  #inToken(character: string): PythonStep {
    const isPart = this.#inside === 'word' ? /^[A-Za-z]$/ : /^[-+.\d_eE]$/;
    if (isPart.test(character)) {
      this.#token += character;
      return this.#token.length > MAX_NUMBER_LENGTH ? INVALID : more('');
    }
    const json = this.#inside === 'word' ? wordJson(this.#token) : numberJson(this.#token);
    if (json === null) return INVALID;
    if (this.#valueEnds(json).scan === 'last') return { scan: 'behind', json };
    if (SPACE.test(character)) return more(json);
    const next = this.#between(character);
    return { scan: next.scan, json: json + next.json };
  }

  #close(): PythonStep {
    const { isDict } = this.#open.pop()!;
    return this.#valueEnds(isDict ? '}' : ']');
  }

  #valueEnds(json: string): PythonStep {
    this.#inside = 'nothing';
    this.#expects = 'comma-or-end';
    return { scan: this.#open.length === 0 ? 'last' : 'more', json };
  }
}

/** JSON of a text's unit. Half of a surrogate pair stays as it is: its other half comes next. */
export function inJson(unit: string): string {
  if (unit >= ' ' && unit !== '"' && unit !== '\\') return unit;
  return JSON.stringify(unit).slice(1, -1);
}

/** JSON of True, False, None and JSON's own words; null: another word. */
export function wordJson(word: string): string | null {
  return Object.hasOwn(WORDS, word) ? WORDS[word]! : null;
}

/** JSON of a number as Python has it; null: it is not a number. */
export function numberJson(token: string): string | null {
  const parts = NUMBER.exec(token);
  if (parts === null) return null;
  const [, sign, whole = '', fraction, exponent] = parts.map((part) => part?.replaceAll('_', ''));
  if (whole === '' && !fraction) return null;
  if (/^0\d/.test(whole) && fraction === undefined && exponent === undefined) return null;
  const digits = whole.replace(/^0+(?=\d)/, '') || '0';
  const behind = fraction === undefined ? '' : `.${fraction || '0'}`;
  return `${sign === '-' ? '-' : ''}${digits}${behind}${exponent === undefined ? '' : `e${exponent}`}`;
}
