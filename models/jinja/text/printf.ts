import { typeError, valueError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { Dict } from '../values/dict.js';
import { truncated } from '../values/number-methods.js';
import { asInt, asNumber, type Int, indexOf } from '../values/numbers.js';
import { reprIn, textOf } from '../values/repr.js';
import { typeNameOf } from '../values/types.js';
import { Float, Tuple, type Value } from '../values/value.js';
import { charactersOf, lengthOf } from './code-points.js';
import { floatBody } from './float-format.js';
import { padded } from './padding.js';

interface Conversion {
  key: string | undefined;
  flags: string;
  width: number;
  precision: number | null;
  type: string;
}

const CONVERSION =
  /%(?:\((?<key>[^)]*)\))?(?<flags>[#0\- +]*)(?<width>\*|\d+)?(?:\.(?<precision>\*|\d*))?[hlL]?(?<type>[\s\S]?)/gy;

/** Python's text % values. */
export function printf(format: string, given: Value, run: Rendering): string {
  return new Printf(given, run).format(format);
}

class Printf {
  readonly #given: Value;
  readonly #run: Rendering;
  readonly #values: readonly Value[];
  #next = 0;
  #usesKeys = false;

  constructor(given: Value, run: Rendering) {
    this.#given = given;
    this.#run = run;
    this.#values = given instanceof Tuple ? given.items : [given];
  }

  format(format: string): string {
    let result = '';
    let start = 0;
    for (let at = format.indexOf('%'); at >= 0; at = format.indexOf('%', start)) {
      this.#run.walk(1);
      CONVERSION.lastIndex = at;
      const found = CONVERSION.exec(format)!;
      result += format.slice(start, at) + this.#convert(this.#read(found.groups!));
      start = at + found[0].length;
    }
    const isMapping = this.#usesKeys || this.#given instanceof Dict || Array.isArray(this.#given);
    if (this.#next < this.#values.length && !isMapping) {
      throw typeError('not all arguments converted during string formatting');
    }
    result += format.slice(start);
    this.#run.make(result.length);
    return result;
  }

  #read({ key, flags = '', width, precision, type = '' }: Record<string, string | undefined>): Conversion {
    if (type === '') throw valueError('incomplete format');
    if (key !== undefined) this.#usesKeys = true;
    const measured = width === '*' ? indexOf(this.#take(), '*') : Number(width ?? 0);
    return {
      key,
      flags: measured < 0 ? `${flags}-` : flags,
      width: Math.abs(measured),
      precision:
        precision === undefined ? null : precision === '*' ? indexOf(this.#take(), '*') : Number(precision),
      type,
    };
  }

  #take(): Value {
    const value = this.#values[this.#next++];
    if (value === undefined) throw typeError('not enough arguments for format string');
    return value;
  }

  #valueOf(key: string | undefined): Value {
    if (key === undefined) return this.#take();
    if (!(this.#given instanceof Dict)) throw typeError('format requires a mapping');
    const value = this.#given.get(key);
    if (value === undefined) throw valueError(`the format's key '${key}' is not among the values`);
    return value;
  }

  #convert(conversion: Conversion): string {
    const { type, width, precision } = conversion;
    if (type === '%') return '%';
    this.#run.make(Math.max(width, precision ?? 0));
    const value = this.#valueOf(conversion.key);
    if ('srac'.includes(type)) return this.#textField(value, conversion);
    if ('diuoxX'.includes(type)) return this.#intField(value, conversion);
    if ('eEfFgG'.includes(type)) return this.#floatField(value, conversion);
    throw valueError(`unsupported format character '${type}' (0x${type.codePointAt(0)!.toString(16)})`);
  }

  #textField(value: Value, { type, precision, flags, width }: Conversion): string {
    const text =
      type === 'c'
        ? this.#character(value)
        : type === 's'
          ? textOf(value, this.#run)
          : reprIn(value, this.#run);
    const shown = type === 'a' ? asciiOnly(text) : text;
    const cut =
      precision === null || precision >= lengthOf(shown)
        ? shown
        : charactersOf(shown).slice(0, precision).join('');
    return padded(cut, { side: flags.includes('-') ? '<' : '>', width, fill: ' ' }, this.#run);
  }

  #character(value: Value): string {
    if (typeof value === 'string' && lengthOf(value) === 1) return value;
    const code = asInt(value);
    if (code === null) throw typeError('%c requires int or char');
    return String.fromCodePoint(Number(code));
  }

  #intField(value: Value, { type, flags, width, precision }: Conversion): string {
    const int = this.#int(value, type);
    const radix = type === 'o' ? 8 : type === 'x' || type === 'X' ? 16 : 10;
    const digits = (int < 0 ? -int : int).toString(radix).padStart(precision ?? 0, '0');
    const prefix = flags.includes('#') && radix !== 10 ? `0${type}` : '';
    return this.#number(int < 0, prefix, type === 'X' ? digits.toUpperCase() : digits, flags, width);
  }

  #int(value: Value, type: string): Int {
    const int = asInt(value);
    if (int !== null) return int;
    if (value instanceof Float && 'diu'.includes(type)) return truncated(value.number);
    const wanted = 'diu'.includes(type) ? 'a real number is required' : 'an integer is required';
    throw typeError(`%${type} format: ${wanted}, not ${typeNameOf(value)}`);
  }

  #floatField(value: Value, { type, flags, width, precision }: Conversion): string {
    const number = asNumber(value);
    if (number === null) throw typeError(`must be real number, not ${typeNameOf(value)}`);
    const style = { type, precision: precision ?? 6, alternate: flags.includes('#') };
    const isNegative = number < 0 || Object.is(number, -0);
    return this.#number(isNegative, '', floatBody(Math.abs(number), style), flags, width);
  }

  #number(isNegative: boolean, prefix: string, digits: string, flags: string, width: number): string {
    const sign = isNegative ? '-' : flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : '';
    const head = sign + prefix;
    if (flags.includes('-')) return padded(head + digits, { side: '<', width, fill: ' ' }, this.#run);
    if (!flags.includes('0')) return padded(head + digits, { side: '>', width, fill: ' ' }, this.#run);
    return head + padded(digits, { side: '>', width: width - head.length, fill: '0' }, this.#run);
  }
}

/** A text whose characters beyond ASCII are escapes, as Python's ascii() writes them. */
export function asciiOnly(text: string): string {
  return text.replace(/[^\0-\x7f]/gu, (character) => {
    const code = character.codePointAt(0)!;
    const digits = code.toString(16);
    if (code < 0x100) return `\\x${digits}`;
    return code < 0x10000 ? `\\u${digits.padStart(4, '0')}` : `\\U${digits.padStart(8, '0')}`;
  });
}
