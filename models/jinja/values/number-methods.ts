import { positional } from '../calls.js';
import type { Method, Methods } from './attributes.js';
import { asInt, type Int, wholeInt } from './numbers.js';
import { type Float, Tuple, type Value } from './value.js';

const bits = (value: Int) => BigInt(value < 0 ? -value : value).toString(2);

/** Methods of int and bool. */
export const INT_METHODS: Methods<Int | boolean> = new Map<string, Method<Int | boolean>>([
  ['bit_length', (self) => (Number(self) === 0 ? 0 : bits(asInt(self)!).length)],
  ['bit_count', (self) => bits(asInt(self)!).replaceAll('0', '').length],
  ['conjugate', (self) => asInt(self)],
  ['as_integer_ratio', (self) => new Tuple([asInt(self), 1])],
]);

/** Methods of float. */
export const FLOAT_METHODS: Methods<Float> = new Map<string, Method<Float>>([
  [
    'is_integer',
    (self, _run, args) => {
      positional('is_integer', args, 0);
      return Number.isInteger(self.number);
    },
  ],
  ['conjugate', (self) => self],
]);

/** An attribute of an int that is no method; undefined: there is none of this name. */
export function numberAttribute(value: Value, name: string): Value | undefined {
  const int = asInt(value);
  if (int === null) return undefined;
  if (name === 'real' || name === 'numerator') return int;
  if (name === 'imag') return 0;
  return name === 'denominator' ? 1 : undefined;
}

/** Python's int() of a float. */
export const truncated = (number: number): Int => wholeInt(Math.trunc(number));
