import { closestName } from '../base/did-you-mean.js';
import type { Range } from '../callbacks/sampling-params.js';
import { rangeText } from './option-ranges.js';

/** What the value of an option must be. */
export interface Rule {
  /** As it reads after "it must be". */
  expected: string;
  accepts(value: unknown): boolean;
}

/** A rule for each field of an options interface: one that is added to the interface without a rule does not compile. */
export type Rules<Options> = { readonly [Name in keyof Required<Options>]: Rule };

export function rule(expected: string, accepts: (value: unknown) => boolean): Rule {
  return { expected, accepts };
}

export function numberIn(range: Range): Rule {
  return rule(rangeText(range), (value) => {
    if (typeof value !== 'number' || !(value >= range.min && value <= range.max)) return false;
    return !range.integer || Number.isInteger(value);
  });
}

export const wholeNumber = (min: number, max: number): Rule => numberIn({ min, max, integer: true });

export function oneOf(...choices: readonly string[]): Rule {
  return rule(`one of ${choices.join(', ')}`, (value) => choices.includes(value as string));
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const SWITCH = rule('true or false', (value) => typeof value === 'boolean');
export const TEXT = rule('a text', (value) => typeof value === 'string');
export const NAME = rule('a text that is not empty', (value) => typeof value === 'string' && value !== '');
export const CALLBACK = rule('a function', (value) => typeof value === 'function');
export const SIGNAL = rule(
  'an AbortSignal',
  (value) =>
    isObject(value) && typeof value.aborted === 'boolean' && typeof value.addEventListener === 'function',
);

/** What is wrong with options: the option that it is about, null where it is all of them. */
export interface OptionFault {
  option: string | null;
  message: string;
}

/**
 * The first thing that is wrong with the options of a call, as one sentence; null if they are right. An option whose
 * value is undefined counts as not given; an unknown one is a mistake whatever its value.
 * @param call as the caller wrote it, such as `generate`.
 * @param example of right options, for a call without any.
 */
export function optionFault<Options>(
  call: string,
  example: string,
  options: unknown,
  rules: Rules<Options>,
): OptionFault | null {
  if (!isObject(options)) {
    return {
      option: null,
      message: `${call} needs an object of options, such as ${example}; it was given ${shown(options)}.`,
    };
  }
  const known: Record<string, Rule> = rules;
  for (const [name, value] of Object.entries(options)) {
    const found = Object.hasOwn(known, name) ? known[name] : undefined;
    if (found === undefined) return unknownOption(call, name, Object.keys(known));
    if (value === undefined || found.accepts(value)) continue;
    return { option: name, message: `${name} is ${shown(value)}; it must be ${found.expected}.` };
  }
  return null;
}

function unknownOption(call: string, name: string, known: readonly string[]): OptionFault {
  const meant = closestName(name, known);
  const hint = meant === null ? `options: ${known.join(', ')}.` : `did you mean ${meant}?`;
  return { option: name, message: `${call} has no option ${JSON.stringify(name)}; ${hint}` };
}

const MAX_SHOWN = 60;

/** A value as a sentence can hold it. */
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
