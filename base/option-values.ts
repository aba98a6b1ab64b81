import { MAX_INT32 } from './int32.js';

/** Accepted values of an option: a description in words and a check. */
export interface Values<T = unknown> {
  /** Form of a value in text, as in a flag or a variable; an object has none. */
  kind: 'text' | 'number' | 'switch' | 'list' | 'object';
  /** Description that reads well after "it must be". */
  expected: string;
  /** All accepted values, where they are a few texts. */
  choices?: readonly string[];
  /** Greatest accepted number, where `expected` leaves it out. */
  most?: number;
  accepts(value: unknown): value is T;
}

/** Limits of a number, both included. */
interface Limits {
  min: number;
  max: number;
  integer: boolean;
}

/** Text of a range, as "a whole number from 1 to 1024"; without the upper end where that is only MAX_INT32. */
export function rangeText({ min, max, integer }: Limits): string {
  const kind = integer ? 'a whole number' : 'a number';
  return max === MAX_INT32 ? `${kind} of at least ${min}` : `${kind} from ${min} to ${max}`;
}

/** Values of any kind, accepted by a function. */
export function rule<T>(expected: string, accepts: (value: unknown) => boolean): Values<T> {
  return { kind: 'object', expected, accepts: accepts as Values<T>['accepts'] };
}

export function numberIn(limits: Limits): Values<number> {
  const { min, max, integer } = limits;
  const accepts = (value: unknown): value is number =>
    typeof value === 'number' && value >= min && value <= max && (!integer || Number.isInteger(value));
  return {
    kind: 'number',
    expected: rangeText(limits),
    accepts,
    ...(max === MAX_INT32 ? { most: max } : {}),
  };
}

/** What a refused value must be, in words: with the upper end where the value is beyond it. */
export function mustBe({ expected, most }: Pick<Values, 'expected' | 'most'>, value: unknown): string {
  const isBeyond = most !== undefined && typeof value === 'number' && value > most;
  return isBeyond ? `${expected} and at most ${most}` : expected;
}

export const wholeNumber = (min: number, max: number): Values<number> =>
  numberIn({ min, max, integer: true });

/** A whole number from 1 on. */
export const COUNT = wholeNumber(1, MAX_INT32);
/** A number of bytes, from 0 on. */
export const BYTES = wholeNumber(0, Number.MAX_SAFE_INTEGER);

export function numberOf(choices: readonly number[]): Values<number> {
  return {
    ...rule<number>(`one of ${choices.join(', ')}`, (value) => choices.includes(value as number)),
    kind: 'number',
  };
}

export const SHARE: Values<number> = {
  ...rule<number>(
    'a number above 0 and at most 1',
    (value) => typeof value === 'number' && value > 0 && value <= 1,
  ),
  kind: 'number',
};

export function oneOf<const T extends string>(...choices: readonly T[]): Values<T> {
  const accepts = (value: unknown): value is T => choices.includes(value as T);
  return { kind: 'text', expected: `one of ${choices.join(', ')}`, choices, accepts };
}

export const SWITCH: Values<boolean> = {
  ...rule<boolean>('true or false', (value) => typeof value === 'boolean'),
  kind: 'switch',
};

export const TEXT: Values<string> = {
  ...rule<string>('a text', (value) => typeof value === 'string'),
  kind: 'text',
};

const isName = (value: unknown) => typeof value === 'string' && value !== '';

/** A text that is not empty. */
export const NAME: Values<string> = { ...rule<string>('a text that is not empty', isName), kind: 'text' };

/** A list of one or more texts that are not empty. */
export function listOf(expected: string): Values<string[]> {
  const accepts = (value: unknown) => Array.isArray(value) && value.length > 0 && value.every(isName);
  return { ...rule<string[]>(expected, accepts), kind: 'list' };
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export function callback<T>(): Values<T> {
  return rule<T>('a function', (value) => typeof value === 'function');
}

export const MODULE_URL = rule<string | URL>(
  'the URL of a module',
  (value) => isName(value) || value instanceof URL,
);

const MAX_SHOWN = 60;

/** Text of a value for a sentence. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'function' || typeof value === 'object') return `a ${typeOf(value)}`;
  if (typeof value !== 'string') return String(value);
  return JSON.stringify(value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}...` : value);
}

function typeOf(value: object): string {
  if (typeof value === 'function') return 'function';
  const name = (value as { constructor?: { name?: unknown } }).constructor?.name;
  return typeof name === 'string' && name !== 'Object' ? name : 'plain object';
}
