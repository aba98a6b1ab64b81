import { closestName } from '../../base/did-you-mean.js';
import { type NamedText, option, says } from '../../base/named-text.js';
import { isObject, mustBe, rule, shown, type Values } from '../../base/option-values.js';
import { refusalOf } from './old-names.js';

/** Accepted values of each field of an options interface. A field without them does not compile. */
export type Rules<Options> = { readonly [Name in keyof Required<Options>]: Values };

export const SIGNAL = rule<AbortSignal>(
  'an AbortSignal',
  (value) =>
    isObject(value) && typeof value.aborted === 'boolean' && typeof value.addEventListener === 'function',
);

/** A fault of options: the option concerned, or null where it is all of them. */
export interface OptionFault {
  option: string | null;
  message: NamedText;
}

/**
 * First fault of a call's options, as one sentence; null if there is none. An option whose value is undefined counts as
 * not given; an unknown one is a fault whatever its value.
 * @param call the call as the caller wrote it, such as `generate`.
 * @param example correct options, to show for a call without any.
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
  const known: Record<string, Values> = rules;
  for (const [name, value] of Object.entries(options)) {
    const found = Object.hasOwn(known, name) ? known[name] : undefined;
    if (found === undefined) return unknownOption(call, name, Object.keys(known));
    if (value === undefined || found.accepts(value)) continue;
    return {
      option: name,
      message: says`${option(name)} is ${shown(value)}; it must be ${mustBe(found, value)}.`,
    };
  }
  return null;
}

function unknownOption(call: string, name: string, known: readonly string[]): OptionFault {
  const now = refusalOf(name, (called) => called);
  if (now !== null) return { option: name, message: `${call}: ${now}` };
  const meant = closestName(name, known);
  const hint = meant === null ? `options: ${known.join(', ')}.` : `did you mean ${meant}?`;
  return { option: name, message: `${call} has no option ${JSON.stringify(name)}; ${hint}` };
}
