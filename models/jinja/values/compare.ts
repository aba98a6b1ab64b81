import { typeError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { compareTexts } from '../text/code-points.js';
import { Dict } from './dict.js';
import { eachOf, isIterable } from './iteration.js';
import { asInt, asNumber } from './numbers.js';
import { typeNameOf } from './types.js';
import { Undefined } from './undefined.js';
import { DictView, Float, Range, Tuple, type Value } from './value.js';

/** Python's ==. */
export function equals(a: Value, b: Value, run: Rendering): boolean {
  if (a === b) return true;
  if (typeof a === 'string' || typeof b === 'string' || a === null || b === null) return false;
  if (typeof a !== 'object' || typeof b !== 'object' || a instanceof Float || b instanceof Float) {
    return equalNumbers(a, b);
  }
  if (Array.isArray(a)) return Array.isArray(b) && equalItems(a, b, run);
  if (a instanceof Tuple) return b instanceof Tuple && equalItems(a.items, b.items, run);
  if (a instanceof Dict) return b instanceof Dict && equalDicts(a, b, run);
  if (a instanceof Range) {
    return b instanceof Range && equalItems(a.toArray(), b.toArray(), run);
  }
  if (a instanceof DictView) {
    return b instanceof DictView && a.part !== 'values' && a.part === b.part && equalViews(a, b, run);
  }
  return a instanceof Undefined && b instanceof Undefined;
}

function equalNumbers(a: Value, b: Value): boolean {
  const [x, y] = [asInt(a), asInt(b)];
  // biome-ignore lint/suspicious/noDoubleEquals: a bigint equals a number of the same value.
  if (x !== null && y !== null) return x == y;
  const [left, right] = [a instanceof Float ? a.number : x, b instanceof Float ? b.number : y];
  // biome-ignore lint/suspicious/noDoubleEquals: as above.
  return left !== null && right !== null && left == right;
}

function equalItems(a: readonly Value[], b: readonly Value[], run: Rendering): boolean {
  if (a.length !== b.length) return false;
  run.walk(a.length);
  return a.every((item, i) => equals(item, b[i]!, run));
}

function equalDicts(a: Dict, b: Dict, run: Rendering): boolean {
  if (a.size !== b.size) return false;
  run.walk(a.size);
  return a.items().every(([key, value]) => {
    const other = b.get(key);
    return other !== undefined && equals(value, other, run);
  });
}

function equalViews(a: DictView, b: DictView, run: Rendering): boolean {
  if (a.part === 'items') return equalDicts(a.dict, b.dict, run);
  run.walk(a.dict.size);
  return a.dict.size === b.dict.size && a.dict.keys().every((key) => b.dict.has(key));
}

/** Order of two values: negative, 0, positive, or NaN where both are no order's. @throws JinjaError where they have none. */
export function compare(a: Value, b: Value, run: Rendering, operator = '<'): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') {
    run.read(Math.min(a.length, b.length));
    return compareTexts(a, b);
  }
  const [x, y] = [a instanceof Float ? a.number : asInt(a), b instanceof Float ? b.number : asInt(b)];
  if (x !== null && y !== null) return x < y ? -1 : x > y ? 1 : asNumber(a)! - asNumber(b)! || 0;
  if (Array.isArray(a) && Array.isArray(b)) return compareItems(a, b, run, operator);
  if (a instanceof Tuple && b instanceof Tuple) return compareItems(a.items, b.items, run, operator);
  if (a instanceof Undefined) throw a.error;
  if (b instanceof Undefined) throw b.error;
  throw typeError(
    `'${operator}' not supported between instances of '${typeNameOf(a)}' and '${typeNameOf(b)}'`,
  );
}

function compareItems(a: readonly Value[], b: readonly Value[], run: Rendering, operator: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    run.walk(1);
    if (!equals(a[i]!, b[i]!, run)) return compare(a[i]!, b[i]!, run, operator);
  }
  return a.length - b.length;
}

/** Python's `in`. @throws JinjaError where nothing can be in the second value. */
export function contains(container: Value, value: Value, run: Rendering): boolean {
  if (typeof container === 'string') {
    if (value instanceof Undefined)
      throw typeError("'in <string>' requires string as left operand, not Undefined");
    if (typeof value !== 'string') {
      throw typeError(`'in <string>' requires string as left operand, not ${typeNameOf(value)}`);
    }
    run.read(container.length);
    return container.includes(value);
  }
  if (container instanceof Dict) return container.has(value);
  if (container instanceof DictView && container.part === 'keys') return container.dict.has(value);
  if (!isIterable(container)) throw typeError(`argument of type '${typeNameOf(container)}' is not iterable`);
  for (const item of eachOf(container, run)) {
    run.walk(1);
    if (equals(item, value, run)) return true;
  }
  return false;
}

/** Python's sorted(): stable, by keys. */
export function sorted(
  values: readonly Value[],
  keyOf: (value: Value) => Value,
  run: Rendering,
  reverse = false,
): Value[] {
  run.make(values.length);
  const keyed = values.map((value) => ({ key: keyOf(value), value }));
  const sign = reverse ? -1 : 1;
  keyed.sort((a, b) => {
    run.walk(1);
    return sign * compare(a.key, b.key, run) || 0;
  });
  return keyed.map(({ value }) => value);
}
