import { type JinjaError, typeError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { printf } from '../text/printf.js';
import { arithmetic, asInt, type Operator } from './numbers.js';
import { typeNameOf } from './types.js';
import { Undefined } from './undefined.js';
import { Tuple, type Value } from './value.js';

/** The result of a binary operator. */
export function binary(operator: Operator, a: Value, b: Value, run: Rendering): Value {
  if (typeof a === 'string' && operator === '%') return printf(a, b, run);
  const number = arithmetic(operator, a, b);
  if (number !== null) return number;
  if (operator === '+') return added(a, b, run);
  const repeated = operator === '*' ? (repeat(a, b, run) ?? repeat(b, a, run)) : null;
  if (repeated !== null) return repeated;
  throw unsupported(operator, a, b);
}

function unsupported(operator: Operator, a: Value, b: Value): JinjaError {
  if (a instanceof Undefined) return a.error;
  if (b instanceof Undefined) return b.error;
  const shown = operator === '**' ? '** or pow()' : operator;
  return typeError(`unsupported operand type(s) for ${shown}: '${typeNameOf(a)}' and '${typeNameOf(b)}'`);
}

/** Python's + of texts, lists and tuples. */
function added(a: Value, b: Value, run: Rendering): Value {
  if (typeof a === 'string' && typeof b === 'string') {
    run.make(a.length + b.length);
    return a + b;
  }
  if (Array.isArray(a) && Array.isArray(b)) return joinedItems(a, b, run);
  if (a instanceof Tuple && b instanceof Tuple) return new Tuple(joinedItems(a.items, b.items, run));
  if (b instanceof Undefined || a instanceof Undefined) throw unsupported('+', a, b);
  if (typeof a === 'string' || Array.isArray(a) || a instanceof Tuple) {
    const own = typeNameOf(a);
    throw typeError(`can only concatenate ${own} (not "${typeNameOf(b)}") to ${own}`);
  }
  throw unsupported('+', a, b);
}

function joinedItems(a: Value[], b: Value[], run: Rendering): Value[] {
  run.make(a.length + b.length);
  return [...a, ...b];
}

/** A text, list or tuple times an int; null where these are others. */
function repeat(value: Value, times: Value, run: Rendering): Value | null {
  const int = asInt(times);
  if (int === null) return null;
  const count = Math.max(0, Number(int));
  if (typeof value === 'string') {
    run.make(value.length * count);
    return value.repeat(value === '' ? 0 : count);
  }
  const items = value instanceof Tuple ? value.items : value;
  if (!Array.isArray(items)) return null;
  run.make(items.length * count);
  const repeated = items.length === 0 ? [] : Array.from({ length: count }, () => items).flat();
  return value instanceof Tuple ? new Tuple(repeated) : repeated;
}
