import type { Args } from '../calls.js';
import { JinjaError, typeError, valueError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { getAttribute, getItem } from '../values/attributes.js';
import { Dict } from '../values/dict.js';
import { reprIn, textOf } from '../values/repr.js';
import type { Value } from '../values/value.js';
import { formatValue } from './format-spec.js';
import { asciiOnly } from './printf.js';

/** Fields within a field's specification, and no further ones within those. */
const MAX_DEPTH = 2;

/** Python's str.format, whose fields reach attributes as the template itself does. */
export function formatted(format: string, args: Args, run: Rendering): string {
  return new Formatter(args, run).format(format, MAX_DEPTH);
}

/** Python's str.format_map. */
export function formatMapped(format: string, mapping: Value, run: Rendering): string {
  if (!(mapping instanceof Dict)) throw typeError('format_map() takes a dict');
  const named = new Map(mapping.items().map(([key, value]) => [String(key), value]));
  return new Formatter({ values: [], named }, run).format(format, MAX_DEPTH);
}

class Formatter {
  readonly #args: Args;
  readonly #run: Rendering;
  /** Number of the next field without a number of its own. */
  #automatic = 0;
  #usesNumbers = false;

  constructor(args: Args, run: Rendering) {
    this.#args = args;
    this.#run = run;
  }

  format(format: string, depth: number): string {
    if (depth < 0) throw valueError('Max string recursion exceeded');
    let result = '';
    let at = 0;
    while (at < format.length) {
      const brace = nextBrace(format, at);
      result += format.slice(at, brace);
      at = brace;
      if (at >= format.length) break;
      if (format[at + 1] === format[at]) {
        result += format[at];
        at += 2;
        continue;
      }
      if (format[at] === '}') throw valueError("Single '}' encountered in format string");
      const end = endOfField(format, at);
      this.#run.walk(1);
      result += this.#field(format.slice(at + 1, end), depth);
      at = end + 1;
      this.#run.make(result.length);
    }
    return result;
  }

  #field(field: string, depth: number): string {
    const [, name = '', conversion, spec = ''] =
      /^((?:\[[^\]]*\]|[^![:])*)(?:!([\s\S]?))?(?::([\s\S]*))?$/.exec(field) ?? [];
    if (conversion === '') throw valueError('end of string while looking for conversion specifier');
    const value = this.#value(name);
    const resolved = this.format(spec, depth - 1);
    if (conversion === undefined) return formatValue(value, resolved, this.#run);
    return formatValue(this.#converted(value, conversion), resolved, this.#run);
  }

  #converted(value: Value, conversion: string): string {
    if (conversion === 's') return textOf(value, this.#run);
    const text = reprIn(value, this.#run);
    if (conversion === 'r') return text;
    if (conversion === 'a') return asciiOnly(text);
    throw valueError(`Unknown conversion specifier ${conversion}`);
  }

  #value(name: string): Value {
    const [first = ''] = /^[^.[]*/.exec(name) ?? [];
    let value = this.#first(first);
    const path = name.slice(first.length);
    const parts = /\.([^.[]+)|\[([^\]]+)\]/gy;
    let end = 0;
    for (let part = parts.exec(path); part !== null; part = parts.exec(path)) {
      const [whole, attribute, key] = part;
      end += whole.length;
      if (attribute !== undefined) value = getAttribute(value, attribute);
      else value = getItem(value, /^\d+$/.test(key!) ? Number(key) : key!);
    }
    if (end !== path.length) throw valueError('Empty attribute in format string');
    return value;
  }

  #first(name: string): Value {
    if (name !== '' && !/^\d+$/.test(name)) {
      const value = this.#args.named?.get(name);
      if (value === undefined) throw new JinjaError('KeyError', `'${name}'`);
      return value;
    }
    const index = name === '' ? this.#nextNumber() : this.#ownNumber(Number(name));
    const value = this.#args.values[index];
    if (value === undefined) {
      throw new JinjaError('IndexError', `Replacement index ${index} out of range for positional args tuple`);
    }
    return value;
  }

  #nextNumber(): number {
    if (this.#usesNumbers) {
      throw valueError('cannot switch from manual field specification to automatic field numbering');
    }
    const number = this.#automatic;
    this.#automatic = number + 1;
    return number;
  }

  #ownNumber(number: number): number {
    if (this.#automatic > 0) {
      throw valueError('cannot switch from automatic field numbering to manual field specification');
    }
    this.#usesNumbers = true;
    return number;
  }
}

function nextBrace(format: string, from: number): number {
  const at = format.slice(from).search(/[{}]/);
  return at < 0 ? format.length : from + at;
}

/** Where the brace at `open` is closed. */
function endOfField(format: string, open: number): number {
  let depth = 0;
  for (let at = open; at < format.length; at++) {
    if (format[at] === '{') depth++;
    else if (format[at] === '}' && --depth === 0) return at;
  }
  throw valueError("expected '}' before end of string");
}
