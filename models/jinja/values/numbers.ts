import { JinjaError, typeError, valueError } from '../errors.js';
import { typeNameOf } from './types.js';
import { Float, type Value } from './value.js';

/** An int: a bigint only where a number would lose digits. */
export type Int = number | bigint;

/** Most bits of an int: Python writes no int of more than 4300 digits. */
const MAX_BITS = 16_384;

/** An int of a bigint. */
export function toInt(value: bigint): Int {
  if (value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER) return Number(value);
  if (value > LARGEST || value < -LARGEST) throw tooLarge();
  return value;
}

const LARGEST = 2n ** BigInt(MAX_BITS);

const tooLarge = () => new JinjaError('OverflowError', `it makes an int of more than ${MAX_BITS} bits`);

/** An int of a whole number, which may be beyond 2^53. */
export const wholeInt = (number: number): Int =>
  Number.isSafeInteger(number) ? (number === 0 ? 0 : number) : toInt(BigInt(number));

/** The int that a value is, bools included; null: it is none. */
export function asInt(value: Value): Int | null {
  if (typeof value === 'number' || typeof value === 'bigint') return value;
  return typeof value === 'boolean' ? Number(value) : null;
}

/** The number that a value is, as JavaScript's; null: it is none. */
export function asNumber(value: Value): number | null {
  if (value instanceof Float) return value.number;
  const int = asInt(value);
  return int === null ? null : Number(int);
}

/** An index, a width or a count. @throws JinjaError where it is no int. */
export function indexOf(value: Value, what = `'${typeNameOf(value)}' object`): number {
  const int = asInt(value);
  if (int === null) throw typeError(`${what} cannot be interpreted as an integer`);
  return Number(int);
}

export type Operator = '+' | '-' | '*' | '/' | '//' | '%' | '**';

/** The result of an operator on two numbers; null where one of them is none. */
export function arithmetic(operator: Operator, a: Value, b: Value): Value | null {
  if (typeof a === 'number' && typeof b === 'number') return ofInts(operator, a, b);
  const [left, right] = [asInt(a), asInt(b)];
  if (left !== null && right !== null) return ofInts(operator, left, right);
  const [x, y] = [asNumber(a), asNumber(b)];
  return x === null || y === null ? null : ofFloats(operator, x, y);
}

function ofInts(operator: Operator, a: Int, b: Int): Value {
  switch (operator) {
    case '/':
      return divided(a, b);
    case '**':
      return power(a, b);
    case '//':
    case '%':
      return floored(operator, a, b);
  }
  if (typeof a === 'number' && typeof b === 'number') {
    const result = operator === '+' ? a + b : operator === '-' ? a - b : a * b;
    if (Number.isSafeInteger(result)) return result === 0 ? 0 : result;
  }
  const [x, y] = [BigInt(a), BigInt(b)];
  return toInt(operator === '+' ? x + y : operator === '-' ? x - y : x * y);
}

function divided(a: Int, b: Int): Value {
  if (Number(b) === 0) throw new JinjaError('ZeroDivisionError', 'division by zero');
  if (typeof a === 'number' && typeof b === 'number') return new Float(a / b);
  const quotient = Number(a) / Number(b);
  if (!Number.isFinite(quotient)) {
    throw new JinjaError('OverflowError', 'integer division result too large for a float');
  }
  return new Float(quotient);
}

/** Division down to the next int, or its rest, which has the divisor's sign. */
function floored(operator: '//' | '%', a: Int, b: Int): Value {
  if (Number(b) === 0) throw new JinjaError('ZeroDivisionError', 'integer division or modulo by zero');
  if (typeof a === 'number' && typeof b === 'number' && Math.abs(a) < 2 ** 52 && Math.abs(b) < 2 ** 52) {
    const rest = a % b;
    const positive = rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
    return operator === '%' ? positive + 0 : (a - positive) / b + 0;
  }
  const [x, y] = [BigInt(a), BigInt(b)];
  const rest = ((x % y) + y) % y;
  return toInt(operator === '%' ? rest : (x - rest) / y);
}

function power(a: Int, b: Int): Value {
  if (b < 0) {
    if (Number(a) === 0) {
      throw new JinjaError('ZeroDivisionError', '0.0 cannot be raised to a negative power');
    }
    return new Float(Number(a) ** Number(b));
  }
  const base = BigInt(a);
  if (base === 0n || base === 1n) return b === 0 ? 1 : Number(base);
  if (base === -1n) return BigInt(b) % 2n === 0n ? 1 : -1;
  const bits = base.toString(16).length * 4;
  // A base of n bits has at least n - 5 of them in each factor.
  if (Number(b) * Math.max(1, bits - 5) > MAX_BITS) throw tooLarge();
  return toInt(base ** BigInt(b));
}

function ofFloats(operator: Operator, a: number, b: number): Value {
  switch (operator) {
    case '+':
      return new Float(a + b);
    case '-':
      return new Float(a - b);
    case '*':
      return new Float(a * b);
    case '**':
      return floatPower(a, b);
  }
  if (b === 0) {
    const message = operator === '/' ? 'float division by zero' : 'float floor division by zero';
    throw new JinjaError('ZeroDivisionError', operator === '%' ? 'float modulo' : message);
  }
  if (operator === '/') return new Float(a / b);
  const rest = a % b;
  const positive = rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
  return new Float(operator === '%' ? positive : Math.round((a - positive) / b));
}

function floatPower(a: number, b: number): Value {
  if (a === 0 && b < 0) {
    throw new JinjaError('ZeroDivisionError', '0.0 cannot be raised to a negative power');
  }
  if (a < 0 && !Number.isInteger(b)) throw valueError('a negative number has no power with a fraction');
  const result = a ** b;
  if (!Number.isFinite(result) && Number.isFinite(a) && Number.isFinite(b)) {
    throw new JinjaError('OverflowError', 'Numerical result out of range');
  }
  return new Float(result);
}

/** Python's unary - or +; null where the value is no number. */
export function signed(sign: '-' | '+', value: Value): Value | null {
  if (value instanceof Float) return sign === '-' ? new Float(-value.number) : value;
  const int = asInt(value);
  if (int === null || sign === '+') return int;
  return typeof int === 'bigint' ? toInt(-int) : 0 - int;
}
