import { isUtf8 } from 'node:buffer';
import { messageOf } from '../../../base/error-text.js';
import { malformed } from '../../serving/infer-failure.js';
import { nextTurn } from '../../serving/protocol/turns.js';
import { JsonSize, MAX_JSON_DEPTH, MAX_JSON_VALUES } from '../web/bodies/json-size.js';
import { DataLists } from './data-lists.js';
import { broken } from './json-elements.js';
import { ListText } from './json-tensors.js';

/** The JSON of a request, as a value. */
export interface RequestJson {
  value: unknown;
  /** The size of what was parsed: all of it, or what remains without the lists. */
  size: JsonSize;
  parsedBytes: number;
  /**
   * Lists of `data` that were left out: each was replaced by a list with its number. Null: none was, `value`
   * is whole.
   */
  lists: readonly ListText[] | null;
}

/** Bytes of a request that is parsed in one go: a fraction of a millisecond. */
const SHORT = 2 ** 15;
/** Bytes of a request without its lists. */
const LONGEST_REST = 2 ** 20;
/** Bytes that are looked through in one go. */
const SLICE = 2 ** 18;
/** Numbers of up to 15 digits are exact as they are. */
const LONG_NUMBER = /\d{16}/;

/**
 * Reads the JSON of a request. What is short and has nothing that JavaScript's parser does not know is left to it; of everything else the
 * lists under `data` are cut out, which may be long, may hold 64-bit numbers, and NaN:
 *
 *   {"inputs":[{"name":"A","data":[1,2,3]}]}   ->   {"inputs":[{"name":"A","data":[0]}]}  and  lists: "[1,2,3]"
 *
 * @throws InferError for what is no JSON, or nested deeper or larger than is taken, and where the client leaves
 */
export async function readRequestJson(sent: Uint8Array, signal?: AbortSignal): Promise<RequestJson> {
  if (!isUtf8(sent)) throw broken('it is not UTF-8');
  const bytes = withoutMark(sent);
  if (bytes.length <= SHORT) {
    const size = checkedSize(bytes);
    const text = textOf(bytes);
    const value = LONG_NUMBER.test(text) ? NOT_PARSED : parsed(text);
    if (value !== NOT_PARSED) return { value, size, parsedBytes: bytes.length, lists: null };
  }
  const found = new DataLists(bytes);
  for (let end = SLICE; !found.read(end); end += SLICE) await nextTurn(signal);
  const rest = found.rest(LONGEST_REST);
  if (rest === null) {
    throw malformed(
      `the request has too many lists of 'data', or is longer than ${LONGEST_REST} bytes without them, which is the limit`,
    );
  }
  const size = checkedSize(rest);
  const lists = found.lists.map(([begin, end]) => new ListText(bytes.subarray(begin, end)));
  return { value: parseExact(textOf(rest)), size, parsedBytes: rest.length, lists };
}

/** Some clients put a byte order mark in front. */
function withoutMark(bytes: Uint8Array): Uint8Array {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

const textOf = (bytes: Uint8Array) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');

const NOT_PARSED = Symbol('not parsed');

/** What JavaScript's parser does not take may still be NaN. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return NOT_PARSED;
  }
}

function checkedSize(bytes: Uint8Array): JsonSize {
  const size = new JsonSize();
  size.add(bytes);
  if (!size.isTooMuch) return size;
  throw malformed(
    size.depth > MAX_JSON_DEPTH
      ? `the request is nested more than ${MAX_JSON_DEPTH} levels deep, which is the limit`
      : `the request without its lists of 'data' holds more than ${MAX_JSON_VALUES} values, which is the limit`,
  );
}

/** In front of the digits of a number that is too long for JavaScript's. */
const MARK = '\u0000';
/** Takes each text and each number whole, whatever follows: no character is read twice. */
const TEXT_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
const LONG_WHOLE = /^-?\d{16,20}$/;
const MARKED = /^\0-?\d{16,20}$/;

/**
 * A request whose fields are tensors. In a long one numbers are read as JavaScript has them, whole ones of more than 53 bits then as
 * something that no type takes: to find them would hold the thread. @throws InferError
 */
export function parseFields(text: string): unknown {
  if (text.length <= LONGEST_REST) return parseExact(text);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw broken(messageOf(error).slice(0, 200));
  }
}

/** JSON whose whole numbers of 16 to 20 digits are big integers. @throws InferError */
function parseExact(text: string): unknown {
  try {
    if (!LONG_NUMBER.test(text)) return JSON.parse(text);
    const marked = text.replace(TEXT_OR_NUMBER, (token) =>
      token.length <= 21 && LONG_WHOLE.test(token) ? `"\\u0000${token}"` : token,
    );
    return JSON.parse(marked, (_, value: unknown) => {
      const isMarked = typeof value === 'string' && value[0] === MARK && MARKED.test(value);
      return isMarked ? BigInt(value.slice(1)) : value;
    });
  } catch (error) {
    throw broken(messageOf(error).slice(0, 200));
  }
}
