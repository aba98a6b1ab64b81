import { Dict } from './dict.js';
import { wholeInt } from './numbers.js';
import { Float, PyObject, type Value } from './value.js';

/** From here on JavaScript writes a whole number with an exponent, which Python reads as a float. */
const FIRST_WITH_EXPONENT = 1e21;

/** A value of JSON as Python reads it. A value that is one of a template already stays as it is. */
export function fromJson(json: unknown): Value {
  switch (typeof json) {
    case 'string':
    case 'boolean':
    case 'bigint':
      return json;
    case 'number':
      return numberOf(json);
    case 'object':
      break;
    default:
      return null;
  }
  if (json === null || json instanceof PyObject) return json;
  if (Array.isArray(json)) return json.map(fromJson);
  const dict = new Dict();
  for (const [name, value] of Object.entries(json)) if (value !== undefined) dict.set(name, fromJson(value));
  return dict;
}

function numberOf(number: number): Value {
  const isWhole = Number.isInteger(number) && Math.abs(number) < FIRST_WITH_EXPONENT;
  return isWhole ? wholeInt(number) : new Float(number);
}
