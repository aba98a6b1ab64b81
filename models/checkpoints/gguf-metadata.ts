import { CheckpointError } from './checkpoint.js';

/** Numbers of a GGUF array, in the element type of the file. */
export type GgufNumbers =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

/** A value. 64-bit integers are numbers where that is exact, else bigint. */
export type GgufScalar = number | bigint | boolean | string;
export type GgufArray = GgufNumbers | readonly string[] | readonly boolean[] | readonly GgufArray[];
export type GgufValue = GgufScalar | GgufArray;

/**
 * The key-value pairs in a GGUF file's header. Typed getters return undefined for a missing key, and throw a
 * CheckpointError that names file, key and type for a value of another kind.
 */
export class GgufMetadata extends Map<string, GgufValue> {
  readonly file: string;

  constructor(file: string, entries: Iterable<readonly [string, GgufValue]> = []) {
    super();
    this.file = file;
    for (const [key, value] of entries) this.set(key, value);
  }

  string(key: string): string | undefined {
    const value = this.get(key);
    if (value === undefined || typeof value === 'string') return value;
    throw this.#wrongKind(key, 'a string', value);
  }

  /** A number of any type of the file; a 64-bit integer that a number cannot hold is an error. */
  number(key: string): number | undefined {
    const value = this.get(key);
    if (value === undefined || typeof value === 'number') return value;
    throw this.#wrongKind(key, 'a number', value);
  }

  boolean(key: string): boolean | undefined {
    const value = this.get(key);
    if (value === undefined || typeof value === 'boolean') return value;
    throw this.#wrongKind(key, 'a boolean', value);
  }

  strings(key: string): readonly string[] | undefined {
    const value = this.get(key);
    if (value === undefined) return undefined;
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) {
      return value as readonly string[];
    }
    throw this.#wrongKind(key, 'an array of strings', value);
  }

  numbers(key: string): ArrayLike<number> | undefined {
    const value = this.get(key);
    if (value === undefined) return undefined;
    if (ArrayBuffer.isView(value)) {
      if (!(value instanceof BigInt64Array || value instanceof BigUint64Array)) return value;
      return Array.from(value, Number);
    }
    if (Array.isArray(value) && value.length === 0) return [];
    throw this.#wrongKind(key, 'an array of numbers', value);
  }

  /** An array of numbers or booleans; undefined where there is none, or a number in its place. */
  list(key: string): ArrayLike<number | boolean> | undefined {
    const value = this.get(key);
    if (value === undefined || typeof value === 'number') return undefined;
    if (Array.isArray(value) && value.every((item) => typeof item === 'boolean')) return value as boolean[];
    return this.numbers(key);
  }

  #wrongKind(key: string, expected: string, found: GgufValue): CheckpointError {
    return new CheckpointError(
      `${this.file}: metadata key ${key} should be ${expected}, found ${kindOf(found)}.`,
    );
  }
}

function kindOf(value: GgufValue): string {
  if (ArrayBuffer.isView(value)) return `${value.constructor.name.replace('Array', '')}[${value.length}]`;
  if (Array.isArray(value)) return `an array of ${value.length} ${typeof (value[0] ?? 'item')} items`;
  return typeof value === 'string' ? 'a string' : `${typeof value} ${String(value)}`;
}
