import type { Rendering } from '../rendering.js';
import { isPrintable } from '../text/character-classes.js';
import { Dict } from './dict.js';
import { floatText } from './float-text.js';
import { DictView, Float, PyObject, Range, Tuple, type Value } from './value.js';

/** Most characters of a value in a message. */
const MAX_SHOWN = 80;

/** Python's repr of a key or another small value, for messages. */
export function reprOf(value: Value): string {
  if (typeof value === 'string') return reprText(value.slice(0, MAX_SHOWN), null);
  if (typeof value === 'object' && value !== null && !(value instanceof Float)) return '(...)';
  return scalarText(value);
}

/** Python's str() of a value. */
export function textOf(value: Value, run: Rendering): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  return value instanceof PyObject && value.typeName === 'Undefined' ? '' : reprIn(value, run);
}

/** Python's repr of a value, however large; its length and work are counted. */
export function reprIn(value: Value, run: Rendering): string {
  return new ReprWriter(run).write(value);
}

function scalarText(value: Value): string {
  switch (typeof value) {
    case 'boolean':
      return value ? 'True' : 'False';
    case 'number':
    case 'bigint':
      return String(value);
  }
  return value instanceof Float ? floatText(value.number) : 'None';
}

class ReprWriter {
  readonly #run: Rendering;
  #text = '';

  constructor(run: Rendering) {
    this.#run = run;
  }

  write(value: Value): string {
    this.#put(value);
    this.#run.make(this.#text.length);
    return this.#text;
  }

  #put(value: Value): void {
    if (typeof value === 'string') {
      this.#add(reprText(value, this.#run.marks));
    } else if (typeof value !== 'object' || value === null || value instanceof Float) {
      this.#add(scalarText(value));
    } else if (Array.isArray(value)) {
      this.#list('[', value, ']');
    } else if (value instanceof Tuple) {
      this.#list('(', value.items, value.items.length === 1 ? ',)' : ')');
    } else if (value instanceof Dict) {
      this.#dict(value);
    } else if (value instanceof DictView) {
      this.#add(value.typeName);
      this.#list('([', value.toArray(), '])');
    } else if (value instanceof Range) {
      this.#add(`range(${value.start}, ${value.stop}${value.step === 1 ? '' : `, ${value.step}`})`);
    } else {
      this.#add(value.repr());
    }
  }

  #list(open: string, items: readonly Value[], close: string): void {
    this.#add(open);
    for (const [i, item] of items.entries()) {
      if (i > 0) this.#text += ', ';
      this.#put(item);
    }
    this.#text += close;
  }

  #dict(dict: Dict): void {
    this.#add('{');
    for (const [i, [key, value]] of dict.items().entries()) {
      if (i > 0) this.#text += ', ';
      this.#put(key);
      this.#text += ': ';
      this.#put(value);
    }
    this.#text += '}';
  }

  /** Adds a value's text. A list may hold itself many times, so each value counts. */
  #add(text: string): void {
    this.#run.walk(1);
    this.#text += text;
    this.#run.check(this.#text.length);
  }
}

/** A text in quotes. @param marks characters that stay as they are */
function reprText(text: string, marks: ReadonlySet<string> | null): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  if (PLAIN.test(text)) return quote + text + quote;
  let body = '';
  for (const character of text) body += reprCharacter(character, quote, marks);
  return quote + body + quote;
}

/** Texts that need no escape in any quotes. */
const PLAIN = /^[ !#-&(-[\]-~]*$/;
const ESCAPED: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function reprCharacter(character: string, quote: string, marks: ReadonlySet<string> | null): string {
  if (character === quote) return `\\${character}`;
  const escaped = ESCAPED[character];
  if (escaped !== undefined) return escaped;
  if (isPrintable(character) || marks?.has(character)) return character;
  const code = character.codePointAt(0)!;
  const digits = code.toString(16);
  if (code < 0x100) return `\\x${digits.padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${digits.padStart(4, '0')}` : `\\U${digits.padStart(8, '0')}`;
}
