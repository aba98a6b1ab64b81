import { isObject } from '../../../base/option-values.js';

/** A number in JSON: one that JSON cannot write is a text. */
export type JsonNumber = number | 'NaN' | 'Infinity' | '-Infinity';

type TypedArray = Int32Array | Float32Array;

/**
 * What a value is as JSON: typed arrays are lists, bigints decimal texts, maps objects. Numbers of a Float32Array and of
 * a Map may be texts: see JsonNumber.
 */
export type JsonForm<T> = T extends bigint
  ? string
  : T extends Float32Array
    ? JsonNumber[]
    : T extends Int32Array
      ? number[]
      : T extends ReadonlyMap<number, number>
        ? Record<string, JsonNumber>
        : T extends readonly (infer Entry)[]
          ? JsonForm<Entry>[]
          : T extends object
            ? { [Field in keyof T]: JsonForm<T[Field]> }
            : T;

/**
 * The JSON form of a request, a piece, statistics or events: typed arrays become lists, bigints decimal texts, maps
 * objects, and NaN and infinities texts. Fields that are undefined are left out.
 */
export function jsonFormOf<T>(value: T): JsonForm<T> {
  return formOf(value) as JsonForm<T>;
}

function formOf(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (ArrayBuffer.isView(value)) return Array.from(value as TypedArray, formOf);
  if (Array.isArray(value)) return value.map(formOf);
  const entries = value instanceof Map ? [...value] : isObject(value) ? Object.entries(value) : null;
  if (entries === null) return value;
  return Object.fromEntries(
    entries.filter(([, field]) => field !== undefined).map(([name, field]) => [name, formOf(field)]),
  );
}
