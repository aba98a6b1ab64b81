import { entriesAsWritten, writtenForm } from '../../../base/written-json.js';
import { Dict } from './dict.js';
import { toInt, wholeInt } from './numbers.js';
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
      return ofNumber(json);
    case 'object':
      break;
    default:
      return null;
  }
  if (json === null || json instanceof PyObject) return json;
  const numbers = writtenForm(json)?.numbers;
  if (Array.isArray(json)) return json.map((item, i) => ofField(item, numbers?.get(String(i))));
  const dict = new Dict();
  for (const [name, value] of entriesAsWritten(json as Record<string, unknown>)) {
    if (value !== undefined) dict.set(name, ofField(value, numbers?.get(name)));
  }
  return dict;
}

const ofField = (value: unknown, written: string | undefined): Value =>
  written !== undefined && typeof value === 'number' ? ofText(written) : fromJson(value);

function ofNumber(number: number): Value {
  if (Number.isSafeInteger(number)) return wholeInt(number);
  const isWhole = Number.isInteger(number) && Math.abs(number) < FIRST_WITH_EXPONENT;
  // The digits that JavaScript writes, which are not all of the number's own.
  return isWhole ? toInt(BigInt(String(number))) : new Float(number);
}

/** A number as it was written. */
const ofText = (text: string): Value => (/[.eE]/.test(text) ? new Float(Number(text)) : toInt(BigInt(text)));
