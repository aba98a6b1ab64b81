import { getItem } from '../values/attributes.js';
import { Undefined } from '../values/undefined.js';
import type { Value } from '../values/value.js';

/** Reads an attribute of a value. */
export type Read = (value: Value) => Value;

/** Texts in lower case, for comparisons that ignore it. */
export const lowered: Read = (value) => (typeof value === 'string' ? value.toLowerCase() : value);

/**
 * A reader of an attribute as filters name it: 'a.b' of attributes of attributes, where numbers are indices; null: the
 * value itself. @param fallback in place of what is undefined; null: none
 */
export function attributeReader(path: Value, fallback: Value = null): Read {
  const parts = partsOf(path);
  return (value) => {
    let found = value;
    for (const part of parts) {
      found = getItem(found, part);
      if (fallback !== null && found instanceof Undefined) found = fallback;
    }
    return found;
  };
}

function partsOf(path: Value): Value[] {
  if (path === null) return [];
  if (typeof path !== 'string') return [path];
  return path.split('.').map((part) => (/^\p{Nd}+$/u.test(part) ? Number(part) : part));
}

/** A reader of several attributes, which commas separate, as a list; each goes through `change`. */
export function attributesReader(paths: Value, change: Read | null): (value: Value) => Value[] {
  const readers = (typeof paths === 'string' ? paths.split(',') : [paths]).map((path) =>
    attributeReader(path),
  );
  return (value) => readers.map((read) => (change === null ? read(value) : change(read(value))));
}
