import { bind, type Parameter } from '../calls.js';
import { typeError, valueError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { compare } from '../values/compare.js';
import { Dict } from '../values/dict.js';
import { floatText } from '../values/float-text.js';
import { asInt, indexOf } from '../values/numbers.js';
import { isTrue, typeNameOf } from '../values/types.js';
import { Float, Tuple, type Value } from '../values/value.js';
import type { Filter } from './registry.js';

const PARAMETERS: readonly Parameter[] = [
  ['ensure_ascii', false],
  ['indent', null],
  ['separators', null],
  ['sort_keys', false],
];

interface JsonStyle {
  isAscii: boolean;
  /** What each level is indented by; null: all is on one line. */
  indent: string | null;
  comma: string;
  colon: string;
  isSorted: boolean;
}

/** The filter tojson as transformers has it: json.dumps, which by default leaves characters as they are. */
export const tojson: Filter = (run, value, args) => {
  const [ascii, indent, separators, sorted] = bind('tojson', PARAMETERS, args) as [
    Value,
    Value,
    Value,
    Value,
  ];
  const [comma, colon] = separatorsOf(separators, indent);
  const style = {
    isAscii: isTrue(ascii),
    indent: indentOf(indent, run),
    comma,
    colon,
    isSorted: isTrue(sorted),
  };
  const { written } = run;
  if (written === null || typeof value !== 'object' || value === null || !written.has(value)) {
    return new JsonWriter(style, run).write(value);
  }
  const key = JSON.stringify(style);
  const known = written.get(value, key);
  if (known !== undefined) {
    run.make(known.length);
    return known;
  }
  const text = new JsonWriter(style, run).write(value);
  written.set(value, key, text);
  return text;
};

function separatorsOf(separators: Value, indent: Value): [string, string] {
  if (separators === null) return [indent === null ? ', ' : ',', ': '];
  const items = separators instanceof Tuple ? separators.items : separators;
  if (!Array.isArray(items) || items.length !== 2) throw valueError('separators must be two texts');
  const [comma, colon] = items;
  if (typeof comma !== 'string' || typeof colon !== 'string') throw typeError('separators must be two texts');
  return [comma, colon];
}

function indentOf(indent: Value, run: Rendering): string | null {
  if (indent === null || typeof indent === 'string') return indent;
  const width = Math.max(0, indexOf(indent));
  run.make(width);
  return ' '.repeat(width);
}

class JsonWriter {
  readonly #style: JsonStyle;
  readonly #run: Rendering;
  #text = '';
  #line = '\n';

  constructor(style: JsonStyle, run: Rendering) {
    this.#style = style;
    this.#run = run;
  }

  write(value: Value): string {
    this.#put(value);
    this.#run.make(this.#text.length);
    return this.#text;
  }

  #add(text: string): void {
    this.#text += text;
    this.#run.check(this.#text.length);
  }

  #put(value: Value): void {
    if (typeof value === 'string') this.#add(jsonText(value, this.#style.isAscii, this.#run.marks));
    else if (Array.isArray(value)) this.#list(value);
    else if (value instanceof Dict) this.#dict(value);
    else if (value instanceof Tuple) this.#list(value.items);
    else this.#add(scalar(value));
  }

  #list(items: readonly Value[]): void {
    if (items.length === 0) {
      this.#add('[]');
      return;
    }
    const outer = this.#open('[');
    for (const [i, item] of items.entries()) {
      if (i > 0) this.#next();
      this.#put(item);
    }
    this.#close(outer, ']');
  }

  #dict(dict: Dict): void {
    if (dict.size === 0) {
      this.#add('{}');
      return;
    }
    const outer = this.#open('{');
    for (const [i, [key, value]] of this.#pairsOf(dict).entries()) {
      if (i > 0) this.#next();
      this.#add(jsonText(keyText(key), this.#style.isAscii, this.#run.marks) + this.#style.colon);
      this.#put(value);
    }
    this.#close(outer, '}');
  }

  #pairsOf(dict: Dict): [Value, Value][] {
    const pairs = dict.items();
    if (this.#style.isSorted) pairs.sort(([a], [b]) => compare(a, b, this.#run) || 0);
    return pairs;
  }

  /** Begins a list or an object. Returns the line end outside of it. */
  #open(bracket: string): string {
    const outer = this.#line;
    if (this.#style.indent !== null) {
      this.#run.check(this.#line.length + this.#style.indent.length);
      this.#line += this.#style.indent;
      this.#add(bracket + this.#line);
    } else this.#add(bracket);
    return outer;
  }

  #next(): void {
    const { comma, indent } = this.#style;
    this.#add(indent === null ? comma : comma + this.#line);
  }

  #close(outer: string, bracket: string): void {
    this.#line = outer;
    this.#add(this.#style.indent === null ? bracket : outer + bracket);
  }
}

function scalar(value: Value): string {
  if (value === null) return 'null';
  if (typeof value === 'boolean') return String(value);
  const int = asInt(value);
  if (int !== null) return String(int);
  if (value instanceof Float) return jsonFloat(value.number);
  throw typeError(`Object of type ${typeNameOf(value)} is not JSON serializable`);
}

function jsonFloat(number: number): string {
  if (Number.isNaN(number)) return 'NaN';
  if (Number.isFinite(number)) return floatText(number);
  return number < 0 ? '-Infinity' : 'Infinity';
}

function keyText(key: Value): string {
  if (typeof key === 'string') return key;
  if (key === null || typeof key !== 'object' || key instanceof Float) return scalar(key);
  throw typeError(`keys must be str, int, float, bool or None, not ${typeNameOf(key)}`);
}

const LONE_SURROGATE = /\p{Cs}/u;

/** A text in JSON. @param marks characters that stay as they are */
function jsonText(text: string, isAscii: boolean, marks: ReadonlySet<string> | null): string {
  if (!isAscii) return LONE_SURROGATE.test(text) ? withLoneSurrogates(text) : JSON.stringify(text);
  return JSON.stringify(text).replace(/[\x7f-\uffff]/g, (unit) => {
    if (unit === '\x7f' || marks?.has(unit)) return unit;
    return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}

/** JavaScript would write halves of characters as escapes, where Python leaves them. */
function withLoneSurrogates(text: string): string {
  const parts = text.split(/(\p{Cs}+)/u);
  return `"${parts.map((part, i) => (i % 2 === 1 ? part : JSON.stringify(part).slice(1, -1))).join('')}"`;
}
