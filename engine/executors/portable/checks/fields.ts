/**
 * Checks of fields that come from outside, with the same messages as the native executor's
 * (engine/executors/native/executor/batch_check.cpp): one sentence that names the field, what was found and what is expected.
 */
type NumberArray = Int32Array | Float32Array;

const WORDS = {
  integers: [Int32Array, 'an Int32Array'],
  floats: [Float32Array, 'a Float32Array'],
  doubles: [Float64Array, 'a Float64Array'],
  seeds: [BigUint64Array, 'a BigUint64Array'],
} as const;

export function checkObject(value: unknown, name: string): asserts value is object {
  if (typeof value !== 'object' || value === null) throw new Error(`${name} must be an object.`);
}

/** Checks that each of the fields holds an array of this type. */
export function checkArrays(target: object, type: keyof typeof WORDS, fields: readonly string[]): void {
  const [arrayType, words] = WORDS[type];
  for (const field of fields) {
    if (!((target as Record<string, unknown>)[field] instanceof arrayType))
      throw new Error(`${field} must be ${words}.`);
  }
}

/** Checks that each of the fields holds a whole number of 32 bits. */
export function checkIntegers(target: object, fields: readonly string[]): void {
  for (const field of fields) {
    const value = (target as Record<string, unknown>)[field];
    if (typeof value !== 'number') throw new Error(`${field} must be a number.`);
    if ((value | 0) !== value) throw new Error(`${field} must be a whole number of 32 bits.`);
  }
}

export function checkCount(count: number, least: number, most: number, field: string): void {
  if (count >= least && count <= most) return;
  throw new Error(`${field} is ${count}, but this executor takes ${least} to ${most}.`);
}

export function checkLength(array: { length: number }, needed: number, field: string): void {
  if (array.length >= needed) return;
  throw new Error(`${field} has ${array.length} entries, but ${needed} are needed.`);
}

/** Checks that the first `count` entries are in [least, end). */
export function checkEntries(
  array: Int32Array,
  count: number,
  least: number,
  end: number,
  field: string,
): void {
  checkLength(array, count, field);
  for (let i = 0; i < count; i++) {
    const entry = array[i]!;
    if (entry >= least && entry < end) continue;
    throw new Error(`${field}[${i}] is ${entry}, but it must be in [${least}, ${end}).`);
  }
}

/** Checks that the first `count` entries are numbers in [least, most]. */
export function checkNumbers(
  array: NumberArray,
  count: number,
  least: number,
  most: number,
  field: string,
): void {
  checkLength(array, count, field);
  for (let i = 0; i < count; i++) {
    const entry = array[i]!;
    if (entry >= least && entry <= most) continue;
    throw new Error(`${field}[${i}] is ${entry}, but it must be between ${least} and ${most}.`);
  }
}
