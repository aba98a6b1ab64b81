import { typeError } from '../errors.js';
import type { Rendering } from '../rendering.js';
import { charactersOf, lengthOf as textLength } from '../text/code-points.js';
import { Dict } from './dict.js';
import { typeNameOf } from './types.js';
import { Undefined } from './undefined.js';
import { DictView, Lazy, Range, Tuple, type Value } from './value.js';

/** The values that a loop goes over, at once; null where the value cannot be looped over, or is computed one by one. */
export function itemsOf(value: Value, run: Rendering): Value[] | null {
  if (Array.isArray(value)) return value;
  if (typeof value === 'string') {
    run.make(value.length);
    return charactersOf(value);
  }
  if (value instanceof Tuple) return value.items;
  if (value instanceof Dict) return counted(value.size, run, () => value.keys());
  if (value instanceof DictView) return counted(value.dict.size, run, () => value.toArray());
  if (value instanceof Range) return counted(value.length, run, () => value.toArray());
  return value instanceof Undefined ? [] : null;
}

function counted(size: number, run: Rendering, make: () => Value[]): Value[] {
  run.make(size);
  return make();
}

/** All values of something that can be looped over. @throws JinjaError where it cannot be. */
export function listOf(value: Value, run: Rendering): Value[] {
  const items = itemsOf(value, run);
  if (items !== null) return items;
  if (!(value instanceof Lazy)) throw notIterable(value);
  const taken: Value[] = [];
  for (let next = value.next(); next !== undefined; next = value.next()) {
    run.walk(1);
    taken.push(next);
  }
  run.make(taken.length);
  return taken;
}

/** Values one by one: those of a lazy one are computed when they are asked for. */
export function* eachOf(value: Value, run: Rendering): Generator<Value, void> {
  const items = itemsOf(value, run);
  if (items !== null) {
    yield* items;
    return;
  }
  if (!(value instanceof Lazy)) throw notIterable(value);
  for (let next = value.next(); next !== undefined; next = value.next()) yield next;
}

export const isIterable = (value: Value): boolean =>
  typeof value === 'string' ||
  Array.isArray(value) ||
  [Tuple, Dict, DictView, Range, Lazy, Undefined].some((type) => value instanceof type);

export const notIterable = (value: Value) => typeError(`'${typeNameOf(value)}' object is not iterable`);

/** Python's len(); null where the value has none. */
export function sizeOf(value: Value): number | null {
  if (typeof value === 'string') return textLength(value);
  if (Array.isArray(value)) return value.length;
  if (value instanceof Tuple) return value.items.length;
  if (value instanceof Dict) return value.size;
  if (value instanceof DictView) return value.dict.size;
  if (value instanceof Range) return value.length;
  return value instanceof Undefined ? 0 : null;
}
