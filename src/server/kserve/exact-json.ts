import { messageOf } from '../../../base/error-text.js';
import { malformed } from './errors.js';

/** In front of the digits of a number that is too long for JavaScript's: no text of JSON begins so by itself. */
const MARK = '\u0000';
/** Numbers of up to 15 digits are exact as they are. */
const LONG = /\d{16}/;
const TEXT_OR_LONG = /"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g;

/**
 * JSON whose whole numbers are exact: those of 16 digits and more become big integers where they stand in a list or an object.
 * @throws InferError
 */
export function parseExactJson(text: string): unknown {
  try {
    if (!LONG.test(text)) return JSON.parse(text);
    const marked = text.replace(TEXT_OR_LONG, (token) => (token[0] === '"' ? token : `"\\u0000${token}"`));
    return JSON.parse(marked, (_, value: unknown) => (isMarked(value) ? BigInt(value.slice(1)) : value));
  } catch (error) {
    throw malformed(`failed to parse the request JSON buffer: ${messageOf(error).slice(0, 200)}`);
  }
}

function isMarked(value: unknown): value is string {
  return typeof value === 'string' && value[0] === MARK && /^\0-?\d{16,}$/.test(value);
}
