import { MAX_INT32 } from '../../base/int32.js';
import type { Random } from './random.js';

/**
 * Values that do not belong in place of a number: next to every limit, not whole, not a number, of another
 * type, absent.
 */
const ODD_NUMBERS = [
  -1,
  0,
  1,
  2,
  3,
  5,
  8,
  9,
  33,
  64,
  0.5,
  -0,
  -(2 ** 31),
  MAX_INT32,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  1e30,
  -1e300,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
];
// No file can be made by the name.
const ODD_TEXT = '/dev/null/text';
const ODD_VALUES = [undefined, null, true, ODD_TEXT, '', 7n, [], {}, () => 1, Symbol('odd')];

type TypedArray = Int32Array | Float32Array | BigUint64Array | Uint8Array;
const isTypedArray = (value: unknown): value is TypedArray =>
  ArrayBuffer.isView(value) && !(value instanceof DataView);

/** A deep copy whose typed arrays have memory of their own, of their exact size. */
export function copyOf<T>(value: T): T {
  if (isTypedArray(value)) return value.slice() as T;
  if (Array.isArray(value)) return value.map(copyOf) as T;
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copyOf(item)])) as T;
}

/** Changes one thing somewhere in `target`, and says what. */
export function mutate(target: object, random: Random): string {
  const keys = Object.keys(target);
  if (keys.length === 0) return 'nothing';
  const key = keys[random.below(keys.length)]!;
  const holder = target as Record<string, unknown>;
  const value = holder[key];
  const isDeep = value !== null && typeof value === 'object';
  // Mostly inside of what has an inside: what is wrong altogether is refused before anything is looked at.
  if (isDeep && random.below(8) > 0) {
    if (isTypedArray(value)) return `${key}: ${mutateArray(holder, key, value, random)}`;
    if (Array.isArray(value) && random.below(4) === 0) return `${key}: ${mutateList(value, random)}`;
    return `${key}.${mutate(value, random)}`;
  }
  const isOdd = random.below(3) === 0;
  holder[key] = isOdd ? oneOf(ODD_VALUES, random) : oddNumber(random);
  return `${key} = ${String(holder[key])}`;
}

const oneOf = <T>(items: readonly T[], random: Random): T => items[random.below(items.length)]!;

function oddNumber(random: Random): number {
  return random.below(3) === 0 ? random.below(300) - 20 : oneOf(ODD_NUMBERS, random);
}

function mutateArray(
  holder: Record<string, unknown>,
  key: string,
  array: TypedArray,
  random: Random,
): string {
  const way = random.below(10);
  if (way < 6 && array.length > 0) {
    const at = random.below(array.length);
    const value = oddNumber(random);
    if (array instanceof BigUint64Array) array[at] = BigInt(Math.trunc(Number.isFinite(value) ? value : 0));
    else array[at] = value;
    return `[${at}] = ${value}`;
  }
  if (way === 6 && array.buffer.byteLength > 0) {
    structuredClone(array.buffer, { transfer: [array.buffer as ArrayBuffer] });
    return 'detached';
  }
  if (way === 7) {
    holder[key] = array instanceof Float32Array ? Int32Array.from(array) : new Float32Array(array.length);
    return 'of another type';
  }
  const length = random.below(array.length + 2);
  // Memory of its own: what lies after it is then unused.
  const resized = new (array.constructor as new (length: number) => Uint8Array)(length);
  for (let i = 0; i < Math.min(length, array.length); i++) resized[i] = array[i] as number;
  holder[key] = resized;
  return `of ${length} for ${array.length}`;
}

function mutateList(list: unknown[], random: Random): string {
  const at = random.below(list.length + 1);
  const way = random.below(4);
  if (way === 0) list.length = at;
  else if (way === 1) list.splice(at, 1);
  else if (way === 2) list.splice(at, 0, copyOf(list[random.below(list.length)]));
  else list.reverse();
  return ['cut', 'one less', 'one twice', 'reversed'][way]!;
}

/** Number of inputs that a test of random ones tries: tools/sanitize raises it. */
export function fuzzRuns(usual: number): number {
  return Math.ceil(usual * Number(process.env.SKEIN_FUZZ_FACTOR ?? 1));
}

declare module 'vitest' {
  interface TaskMeta {
    /** Malformed inputs, or changed files, that a test has tried: what tools/sanitize counts. */
    tried?: { what: 'inputs' | 'files'; count: number };
  }
}
