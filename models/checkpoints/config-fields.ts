import { CheckpointError } from './checkpoint.js';
import type { JsonObject } from './file-reading.js';

// Greatest accepted dimensions. They keep every product of two far below 2^53 and the size of a plan bounded.
export const LIMITS = {
  vocabSize: 2 ** 24,
  width: 2 ** 20,
  layers: 4096,
  heads: 2 ** 16,
  positions: 2 ** 30,
  /** Experts of a layer, and those of all layers. */
  experts: 1024,
  allExperts: 2 ** 16,
} as const;

/** Typed access to the fields of a config, with errors that name file, field, expected and found. */
export class ConfigFields {
  readonly where: string;
  readonly #fields: JsonObject;

  constructor(where: string, fields: JsonObject) {
    this.where = where;
    this.#fields = fields;
  }

  /** The value of a field; undefined where it is null or missing. */
  raw(key: string): unknown {
    return Object.hasOwn(this.#fields, key) ? (this.#fields[key] ?? undefined) : undefined;
  }

  /** True where the field exists, even as null. */
  has(key: string): boolean {
    return Object.hasOwn(this.#fields, key);
  }

  integer(key: string, least: number, most: number, fallback?: number): number {
    const value = this.raw(key) ?? fallback;
    if (!Number.isInteger(value) || (value as number) < least || (value as number) > most) {
      throw this.error(key, `a whole number from ${least} to ${most}`);
    }
    return value as number;
  }

  /** A finite number greater than zero. */
  positive(key: string, fallback?: number): number {
    const value = this.raw(key) ?? fallback;
    if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) {
      throw this.error(key, 'a number greater than 0');
    }
    return value;
  }

  positiveOrNull(key: string): number | null {
    return this.raw(key) === undefined ? null : this.positive(key);
  }

  boolean(key: string, fallback: boolean): boolean {
    const value = this.raw(key) ?? fallback;
    if (typeof value !== 'boolean') throw this.error(key, 'true or false');
    return value;
  }

  string(key: string): string | undefined {
    const value = this.raw(key);
    if (value !== undefined && typeof value !== 'string') throw this.error(key, 'a string');
    return value as string | undefined;
  }

  /** A list of whole numbers from 1 to `most`. */
  integers(key: string, length: number, most: number): number[] {
    const value = this.raw(key);
    const isRight = (item: unknown) =>
      Number.isInteger(item) && (item as number) >= 1 && (item as number) <= most;
    if (!Array.isArray(value) || value.length !== length || !value.every(isRight))
      throw this.error(key, `an array of ${length} whole numbers from 1 to ${most}`);
    return value;
  }

  positives(key: string, length: number): number[] {
    const value = this.raw(key);
    const fits =
      Array.isArray(value) &&
      value.length === length &&
      value.every((item) => typeof item === 'number' && Number.isFinite(item) && item > 0);
    if (!fits) throw this.error(key, `an array of ${length} numbers greater than 0`);
    return value as number[];
  }

  /** One token id or several: [] where the field is missing, or -1, which some configs write for none. */
  tokenIds(key: string): number[] {
    const value = this.raw(key);
    if (value === undefined) return [];
    const ids = Array.isArray(value) ? value : [value];
    if (!ids.every((id) => Number.isInteger(id) && id >= -1 && id < LIMITS.vocabSize)) {
      throw this.error(key, 'a token id or an array of them');
    }
    return (ids as number[]).filter((id) => id >= 0);
  }

  error(key: string, expected: string): CheckpointError {
    const value = this.raw(key);
    const shown = typeof value === 'number' ? String(value) : JSON.stringify(value);
    const found = value === undefined ? 'nothing' : shown.slice(0, 100);
    return new CheckpointError(`${this.where}: ${key} should be ${expected}, found ${found}.`);
  }
}
