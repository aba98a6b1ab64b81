import { typeError, valueError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { asInt, type Int } from '../values/numbers.js';
import { textOf } from '../values/repr.js';
import { typeNameOf } from '../values/types.js';
import { Float, type Value } from '../values/value.js';
import { charactersOf, lengthOf } from './code-points.js';
import { floatBody, shortBody } from './float-format.js';
import { padded } from './padding.js';

/** Python's format specification: [[fill]align][sign][z][#][0][width][grouping][.precision][type]. */
interface Spec {
  fill: string;
  align: '<' | '>' | '^' | '=' | '';
  isZeroFilled: boolean;
  sign: '+' | '-' | ' ';
  alternate: boolean;
  width: number;
  grouping: ',' | '_' | '';
  precision: number | null;
  type: string;
}

const SPEC =
  /^(?:(?<fill>[\s\S])?(?<align>[<>=^]))?(?<sign>[+\- ])?z?(?<alternate>#)?(?<zero>0)?(?<width>\d+)?(?<grouping>[,_])?(?:\.(?<precision>\d+))?(?<type>[a-zA-Z%])?$/u;

function parse(text: string, value: Value): Spec {
  const groups = SPEC.exec(text)?.groups;
  if (groups === undefined) {
    throw valueError(
      `Invalid format specifier '${text.slice(0, 40)}' for object of type '${typeNameOf(value)}'`,
    );
  }
  const { fill, align, sign, alternate, zero, width, grouping, precision, type } = groups;
  return {
    fill: fill ?? (zero === undefined ? ' ' : '0'),
    align: (align ?? '') as Spec['align'],
    isZeroFilled: zero !== undefined,
    sign: (sign ?? '-') as Spec['sign'],
    alternate: alternate !== undefined,
    width: Number(width ?? 0),
    grouping: (grouping ?? '') as Spec['grouping'],
    precision: precision === undefined ? null : Number(precision),
    type: type ?? '',
  };
}

/** Python's format(value, spec). */
export function formatValue(value: Value, specText: string, run: Rendering): string {
  if (specText === '') return textOf(value, run);
  if (typeof value === 'string') return formatText(value, parse(specText, value), run);
  const int = asInt(value);
  if (int !== null) return formatInt(int, parse(specText, value), value, run);
  if (value instanceof Float) return formatFloat(value.number, parse(specText, value), run);
  throw typeError(`unsupported format string passed to ${typeNameOf(value)}.__format__`);
}

function formatText(text: string, spec: Spec, run: Rendering): string {
  if (spec.type !== '' && spec.type !== 's') throw unknownType(spec.type, 'str');
  if (spec.align === '=') throw valueError("'=' alignment not allowed in string format specifier");
  if (spec.grouping !== '') throw valueError(`Cannot specify '${spec.grouping}' with 's'.`);
  const cut =
    spec.precision === null || spec.precision >= lengthOf(text)
      ? text
      : charactersOf(text).slice(0, spec.precision).join('');
  return inField(cut, spec, '<', run);
}

const unknownType = (type: string, name: string) =>
  valueError(`Unknown format code '${type}' for object of type '${name}'`);

const RADIX: Readonly<Record<string, number>> = { b: 2, o: 8, x: 16, X: 16 };

function formatInt(int: Int, spec: Spec, value: Value, run: Rendering): string {
  if (spec.type === 'c') return inField(String.fromCodePoint(Number(int)), spec, '<', run);
  if ('eEfFgG%'.includes(spec.type) && spec.type !== '') return formatFloat(Number(int), spec, run);
  const radix = spec.type === '' || spec.type === 'd' || spec.type === 'n' ? 10 : RADIX[spec.type];
  if (radix === undefined) throw unknownType(spec.type, typeNameOf(value));
  if (spec.precision !== null) throw valueError('Precision not allowed in integer format specifier');
  const digits = (int < 0 ? -int : int).toString(radix);
  const body = spec.type === 'X' ? digits.toUpperCase() : digits;
  const prefix = spec.alternate && radix !== 10 ? `0${spec.type}` : '';
  return signedField(int < 0, prefix, body, '', spec, radix === 10 ? 3 : 4, run);
}

function formatFloat(number: number, spec: Spec, run: Rendering): string {
  const { type, alternate, precision } = spec;
  if (!'eEfFgGn%'.includes(type)) throw unknownType(type, 'float');
  run.make(precision ?? 0);
  const size = Math.abs(number);
  const body =
    type === ''
      ? shortBody(size, precision)
      : floatBody(type === '%' ? size * 100 : size, {
          type: type === '%' ? 'f' : type,
          precision: precision ?? 6,
          alternate,
        });
  const [whole, rest] = /^\d+/.test(body) ? [/^\d+/.exec(body)![0], body.replace(/^\d+/, '')] : ['', body];
  const isNegative = number < 0 || Object.is(number, -0);
  return signedField(isNegative, '', whole, rest + (type === '%' ? '%' : ''), spec, 3, run);
}

/** A number in its field: sign, prefix, digits in groups, and what follows them. */
function signedField(
  isNegative: boolean,
  prefix: string,
  digits: string,
  rest: string,
  spec: Spec,
  groupSize: number,
  run: Rendering,
): string {
  const sign = isNegative ? '-' : spec.sign === '-' ? '' : spec.sign;
  const head = sign + prefix;
  const align = spec.align || (spec.isZeroFilled ? '=' : '>');
  if (align !== '=') return inField(head + grouped(digits, spec.grouping, groupSize) + rest, spec, '>', run);
  const width = spec.width - head.length - rest.length;
  run.make(Math.max(0, width));
  if (spec.fill !== '0' || spec.grouping === '') {
    const body = grouped(digits, spec.grouping, groupSize);
    return head + padded(body, { side: '>', width, fill: spec.fill }, run) + rest;
  }
  // Zeros of the padding are in groups too, of which the first may be one longer than the field.
  let body = grouped(digits, spec.grouping, groupSize);
  for (let zeros = digits; body.length < width; body = grouped(zeros, spec.grouping, groupSize))
    zeros = `0${zeros}`;
  return head + body + rest;
}

function grouped(digits: string, separator: string, size: number): string {
  if (separator === '') return digits;
  const first = digits.length % size || size;
  let result = digits.slice(0, first);
  for (let i = first; i < digits.length; i += size) result += separator + digits.slice(i, i + size);
  return result;
}

function inField(text: string, { fill, align, width }: Spec, usual: '<' | '>', run: Rendering): string {
  const side = align === '' || align === '=' ? usual : align;
  const rest = width - lengthOf(text);
  if (side !== '^' || rest <= 0) return padded(text, { side, width, fill }, run);
  // format() has more on the right, where str.center may have more on the left.
  const left = padded(text, { side: '>', width: width - Math.ceil(rest / 2), fill }, run);
  return padded(left, { side: '<', width, fill }, run);
}
