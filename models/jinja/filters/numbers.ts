import { bind } from '../calls.js';
import { JinjaError, typeError } from '../errors.js';
import { floatBody, roundedTo } from '../text/float-format.js';
import { truncated } from '../values/number-methods.js';
import { asInt, asNumber, indexOf, signed, wholeInt } from '../values/numbers.js';
import { readFloat, readInt } from '../values/read-number.js';
import { isTrue, typeNameOf } from '../values/types.js';
import { Undefined } from '../values/undefined.js';
import { Float, type Value } from '../values/value.js';
import type { Filter } from './registry.js';

function numberIn(value: Value, name: string): number {
  const number = asNumber(value);
  if (number !== null) return number;
  throw typeError(`the filter ${name} needs a number, not ${typeNameOf(value)}`);
}

const abs: Filter = (_run, value, args) => {
  bind('abs', [], args);
  return numberIn(value, 'abs') < 0
    ? signed('-', value)!
    : value instanceof Float
      ? new Float(Math.abs(value.number))
      : asInt(value);
};

const int: Filter = (_run, value, args) => {
  const [fallback, base] = bind(
    'int',
    [
      ['default', 0],
      ['base', 10],
    ],
    args,
  ) as [Value, Value];
  if (value instanceof Undefined) throw value.error;
  const own = asInt(value);
  if (own !== null) return own;
  const exact = typeof value === 'string' ? readInt(value, indexOf(base)) : null;
  if (exact !== null) return exact;
  const number = value instanceof Float ? value.number : typeof value === 'string' ? readFloat(value) : null;
  if (number !== null && Number.isFinite(number)) return truncated(number);
  return fallback;
};

const float: Filter = (_run, value, args) => {
  const [fallback] = bind('float', [['default', new Float(0)]], args) as [Value];
  if (value instanceof Undefined) throw value.error;
  if (value instanceof Float) return value;
  const number = typeof value === 'string' ? readFloat(value) : asNumber(value);
  return number === null ? fallback : new Float(number);
};

const round: Filter = (_run, value, args) => {
  const [precision, method] = bind(
    'round',
    [
      ['precision', 0],
      ['method', 'common'],
    ],
    args,
  ) as [Value, Value];
  if (method !== 'common' && method !== 'ceil' && method !== 'floor') {
    throw new JinjaError('FilterArgumentError', 'method must be common, ceil or floor');
  }
  const places = indexOf(precision);
  const number = numberIn(value, 'round');
  const whole = asInt(value);
  if (method === 'common') {
    // Python rounds an int to an int, and to a negative place to tens or hundreds.
    if (whole === null) return new Float(roundedTo(number, places));
    return places >= 0 ? whole : wholeInt(roundedTo(number, places));
  }
  const scale = 10 ** places;
  return new Float(Math[method](number * scale) / scale);
};

const PREFIXES = ['k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'];

const filesizeformat: Filter = (_run, value, args) => {
  const [binary] = bind('filesizeformat', [['binary', false]], args);
  const number = typeof value === 'string' ? readFloat(value) : numberIn(value, 'filesizeformat');
  if (number === null) throw typeError('the filter filesizeformat needs a number');
  const isBinary = isTrue(binary!);
  const base = isBinary ? 1024 : 1000;
  if (number === 1) return '1 Byte';
  if (number < base) return `${Math.trunc(number)} Bytes`;
  const at = PREFIXES.findIndex((_, i) => number < base ** (i + 2));
  const power = at < 0 ? PREFIXES.length - 1 : at;
  const size = (base * number) / base ** (power + 2);
  const prefix = isBinary ? `${PREFIXES[power]!.toUpperCase()}iB` : `${PREFIXES[power]}B`;
  return `${floatBody(size, { type: 'f', precision: 1, alternate: false })} ${prefix}`;
};

export const NUMBER_FILTERS: Readonly<Record<string, Filter>> = { abs, int, float, round, filesizeformat };
