import { JsonScanner, type Scan } from './json-scanner.js';
import { MarkerFinder } from './marker-finder.js';
import { isOneOf } from './parameter-types.js';
import { inJson, numberJson, wordJson } from './python-value.js';

/** Quotation mark on both sides of a text. */
export const QUOTE = '<|"|>';

/** Role of a character in the object, and the JSON that it adds. */
export interface Gemma4Step {
  scan: Scan;
  json: string;
  /** Of an invalid one: the text up to and with it that has added no JSON. */
  rest?: string;
}

/** Types that values of an argument may have; null: any. */
export type TypesOf = (argument: string) => ReadonlySet<string> | null;

const SPACE = /^\s$/;
const MAX_KEY_LENGTH = 256;
const more = (json: string): Gemma4Step => ({ scan: 'more', json });
const invalid = (rest: string): Gemma4Step => ({ scan: 'invalid', json: '', rest });

interface Container {
  isObject: boolean;
  isEmpty: boolean;
}

/**
 * Reads one object as Gemma 4 writes it character by character, and writes it as JSON:
 *
 *   {city:<|"|>Paris<|"|>,days:[1,2.5],on:true,where:{x:null}}
 *
 * Names may have quotes, and texts and names JSON's in place of the model's own. A word that is no value is a text. What an argument's types
 * do not allow becomes what they do where it can: a number a text, or a text the number, the list or the object that it spells.
 */
export class Gemma4Object {
  readonly #typesOf: TypesOf;
  readonly #open: Container[] = [];
  #expects: 'object' | 'key-or-end' | 'colon' | 'value' | 'value-or-end' | 'comma-or-end' = 'object';
  #inside: 'nothing' | 'bare' | 'key' | 'text' | 'quoted' | 'json' = 'nothing';
  readonly #quote = new MarkerFinder([QUOTE]);
  #scanner = new JsonScanner();
  /** The name or word so far, or the text in quotes where its types are no text's. */
  #token = '';
  #isKey = false;
  /** Types of the present argument. */
  #types: ReadonlySet<string> | null = null;
  #isBegun = false;

  constructor(typesOf: TypesOf) {
    this.#typesOf = typesOf;
  }

  /** True once the first name has come. */
  get isBegun(): boolean {
    return this.#isBegun;
  }

  step(character: string): Gemma4Step {
    switch (this.#inside) {
      case 'bare':
      case 'key':
        return this.#inWord(character);
      case 'text':
      case 'quoted':
        return this.#inText(character);
      case 'json':
        return this.#inJson(character);
      case 'nothing':
        return SPACE.test(character) ? more('') : this.#between(character);
    }
  }

  #between(character: string): Gemma4Step {
    switch (this.#expects) {
      case 'object':
        return character === '{' ? this.#openContainer(true) : invalid(character);
      case 'colon':
        if (character !== ':') return invalid(character);
        this.#isNamed();
        return more(': ');
      case 'key-or-end':
        return character === '}' ? this.#close() : this.#beginWord('key', character);
      case 'value-or-end':
        return character === ']' ? this.#close() : this.#beginValue(character);
      case 'value':
        return this.#beginValue(character);
      case 'comma-or-end': {
        const { isObject } = this.#open.at(-1)!;
        if (character === (isObject ? '}' : ']')) return this.#close();
        this.#expects = isObject ? 'key-or-end' : 'value-or-end';
        return character === ',' ? more('') : invalid(character);
      }
    }
  }

  #beginValue(character: string): Gemma4Step {
    if (this.#open.length > 1) this.#types = null;
    const comma = this.#open.at(-1)!.isObject ? '' : this.#comma();
    if (character === '{' || character === '[') {
      const opened = this.#openContainer(character === '{');
      return more(comma + opened.json);
    }
    const begun = this.#beginWord('bare', character);
    return { ...begun, json: comma + begun.json };
  }

  /** The comma in front of the next name or item, unless it is the first one. */
  #comma(): string {
    const container = this.#open.at(-1)!;
    const comma = container.isEmpty ? '' : ', ';
    container.isEmpty = false;
    return comma;
  }

  #openContainer(isObject: boolean): Gemma4Step {
    this.#open.push({ isObject, isEmpty: true });
    this.#expects = isObject ? 'key-or-end' : 'value-or-end';
    return more(isObject ? '{' : '[');
  }

  #beginWord(inside: 'bare' | 'key', character: string): Gemma4Step {
    this.#token = '';
    this.#isKey = inside === 'key';
    this.#inside = inside;
    if (character !== '"') return this.#inWord(character);
    this.#inside = 'json';
    this.#scanner = new JsonScanner();
    return this.#inJson(character);
  }

  #inWord(character: string): Gemma4Step {
    // The quote of a text begins as a word does.
    const longer = this.#token + character;
    if (QUOTE.startsWith(longer)) {
      this.#token = longer;
      return longer === QUOTE ? this.#beginText() : more('');
    }
    return this.#inside === 'key' ? this.#inKey(character) : this.#inBare(character);
  }

  #inKey(character: string): Gemma4Step {
    if (character === ':') {
      const key = this.#token.trim();
      if (key === '') return invalid(this.#token + character);
      this.#inside = 'nothing';
      this.#token = key;
      this.#isNamed();
      return more(`${this.#comma()}${JSON.stringify(key)}: `);
    }
    const isKey = !'{}[],<>'.includes(character) && !this.#token.startsWith('<');
    if (!isKey || this.#token.length === MAX_KEY_LENGTH) return invalid(this.#token + character);
    this.#token += character;
    return more('');
  }

  /** The name and its colon have come. */
  #isNamed(): void {
    this.#expects = 'value';
    this.#isBegun = true;
    if (this.#open.length === 1) this.#types = this.#typesOf(this.#token);
  }

  #inBare(character: string): Gemma4Step {
    if (!',}]'.includes(character)) {
      // Marks begin so, and a text that holds one has quotes.
      if (character === '<' || this.#token.startsWith('<')) return invalid(this.#token + character);
      this.#token += character;
      return more('');
    }
    const word = this.#token.trim();
    if (word === '' && !this.#open.at(-1)!.isObject) return invalid(character);
    const json = bareJson(word, this.#types);
    this.#inside = 'nothing';
    this.#expects = 'comma-or-end';
    const next = this.#between(character);
    return { ...next, json: json + next.json };
  }

  #beginText(): Gemma4Step {
    const isText = this.#isKey || this.#types === null || this.#types.has('string');
    this.#inside = isText ? 'text' : 'quoted';
    this.#token = '';
    if (this.#isKey) return more(`${this.#comma()}"`);
    return more(isText ? '"' : '');
  }

  #inText(character: string): Gemma4Step {
    const { text, marker } = this.#quote.step(character);
    const isText = this.#inside === 'text';
    // The types of an argument follow from its name; a text that may spell a value has to be whole.
    if (this.#isKey || !isText) this.#token += text;
    const json = isText ? jsonOf(text) : '';
    if (marker === null) return more(json);
    return this.#stringEnds(isText ? `${json}"` : textJson(this.#token, this.#types!));
  }

  #inJson(character: string): Gemma4Step {
    const scan = this.#scanner.step(character);
    if (scan === 'invalid') return invalid(this.#token + character);
    this.#token += character;
    if (scan === 'more') return more('');
    const value = JSON.parse(this.#token) as string;
    if (!this.#isKey) {
      const isText = this.#types === null || this.#types.has('string');
      return this.#stringEnds(isText ? this.#token : textJson(value, this.#types!));
    }
    const json = `${this.#comma()}${this.#token}`;
    this.#token = value;
    return this.#stringEnds(json);
  }

  #stringEnds(json: string): Gemma4Step {
    this.#inside = 'nothing';
    this.#expects = this.#isKey ? 'colon' : 'comma-or-end';
    return more(json);
  }

  #close(): Gemma4Step {
    const { isObject } = this.#open.pop()!;
    this.#expects = 'comma-or-end';
    return { scan: this.#open.length === 0 ? 'last' : 'more', json: isObject ? '}' : ']' };
  }
}

const jsonOf = (text: string) => text.split('').map(inJson).join('');

/** JSON of a word without quotes: a number, a word of JSON or Python, or else a text. */
function bareJson(word: string, types: ReadonlySet<string> | null): string {
  const json = wordJson(word) ?? numberJson(word);
  if (json === null) return JSON.stringify(word);
  const isText = types?.has('string') === true && !isOneOf(JSON.parse(json), types);
  return isText ? JSON.stringify(word) : json;
}

/** JSON of a text in quotes whose argument is no text: the value that it spells, if that has one of the types. */
function textJson(text: string, types: ReadonlySet<string>): string {
  const word = text.trim();
  const json = wordJson(word) ?? numberJson(word) ?? word;
  try {
    const value = JSON.parse(json) as unknown;
    if (typeof value !== 'string' && isOneOf(value, types)) return json;
  } catch {
    // It spells no value.
  }
  return JSON.stringify(text);
}
