import type { InferParameters } from './infer-types.js';

/** Tensors of a request, and outputs that it names. */
export const MAX_TENSORS = 1024;
/** Parameters of a request or an answer, and characters of their names and texts together. */
export const MAX_PARAMETERS = 256;
const MAX_PARAMETER_CHARACTERS = 65_536;
export const MAX_DIMS = 32;
/** Characters of a name or an id. */
export const LONGEST_NAME = 1024;
/** Characters of an error's message that cross from one thread to another. */
export const LONGEST_MESSAGE = 4096;

const TYPES: readonly string[] = ['string', 'number', 'bigint', 'boolean'];

/** What is wrong with parameters that code of a model gives; null: nothing. Anything but such values could not cross to another thread. */
export function whyNotParameters(parameters: InferParameters | null | undefined): string | null {
  if (parameters === undefined || parameters === null) return null;
  const names = Object.keys(parameters);
  if (names.length > MAX_PARAMETERS)
    return `there are ${names.length} parameters; at most ${MAX_PARAMETERS} are taken`;
  let characters = 0;
  for (const name of names) {
    const value = parameters[name] as unknown;
    if (!TYPES.includes(typeof value)) {
      return `the parameter '${name.slice(0, LONGEST_NAME)}' is of type ${typeof value}; a text, a number or a boolean is expected`;
    }
    if (
      typeof value === 'bigint' &&
      BigInt.asIntN(64, value) !== value &&
      BigInt.asUintN(64, value) !== value
    )
      return `the parameter '${name.slice(0, LONGEST_NAME)}' has more than 64 bits`;
    characters += name.length + (typeof value === 'string' ? value.length : 0);
  }
  if (characters <= MAX_PARAMETER_CHARACTERS) return null;
  return `the parameters have ${characters} characters; at most ${MAX_PARAMETER_CHARACTERS} are taken`;
}
