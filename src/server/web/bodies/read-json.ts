import { isAscii, isUtf8 } from 'node:buffer';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Context } from 'hono';
import { messageOf } from '../../../../base/error-text.js';
import { parseWritten } from '../../../../base/written-json.js';
import { ApiError } from '../errors.js';
import { bodyMemory, REQUEST_BYTES } from '../memory/memory-estimates.js';
import type { RequestMemory } from '../memory/request-memory.js';
import { JsonSize, MAX_JSON_DEPTH, MAX_JSON_VALUES, SLICE, TEXT_COUNTS } from './json-size.js';

/** Default limit of a body, in bytes: some hundred thousand tokens of prompt. */
export const DEFAULT_MAX_BODY_BYTES = 16 * 1024 * 1024;

export function bodyTooLarge(maxBytes: number): ApiError {
  return new ApiError(413, `The body is longer than ${maxBytes} bytes.`, { code: 'body_too_large' });
}

/**
 * Counts a body, and refuses one that cannot be parsed and walked without a stall. Others get their turn between two
 * slices. @throws ApiError 400.
 */
export async function checkedSize(bytes: Uint8Array): Promise<JsonSize> {
  const size = new JsonSize();
  for (let start = 0; start < bytes.length; start += SLICE) {
    if (start > 0) await nextTurn();
    size.add(bytes.subarray(start, start + SLICE));
    if (size.isTooMuch) throw tooMuch(size);
  }
  return size;
}

function tooMuch({ depth }: JsonSize): ApiError {
  const message =
    depth > MAX_JSON_DEPTH
      ? `The body is nested more than ${MAX_JSON_DEPTH} levels deep, which is the limit.`
      : `The body holds more than ${MAX_JSON_VALUES} values, which is the limit (a text counts as ${TEXT_COUNTS} of them, a field of an object as 16 more).`;
  return new ApiError(400, message, { code: 'invalid_json' });
}

/** A long text takes a turn of its own to be decoded, to be parsed, and what its fields are read into another one. */
async function turnAfter({ length }: string): Promise<void> {
  if (length > SLICE) await nextTurn();
}

/** In a text that is decoded at once, at most one slice in MOSTLY_ASCII is not ASCII. */
const MOSTLY_ASCII = 4;
const ASCII_SLICE = 2 ** 16;

/**
 * Decodes UTF-8: at once where that is little more than a copy; else slice by slice, since characters other than ASCII
 * take ten times as long. Slices exist twice while they are joined, as the parser wants them.
 * @throws ApiError 400.
 */
async function decoded(bytes: Uint8Array): Promise<string> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (isAscii(buffer)) return buffer.toString('latin1');
  if (!isUtf8(buffer)) throw new ApiError(400, 'The body is not valid UTF-8.', { code: 'invalid_json' });
  const decoder = new TextDecoder('utf-8');
  if (isMostlyAscii(buffer)) return decoder.decode(buffer);
  let text = '';
  for (let start = 0; start < bytes.length; start += SLICE) {
    if (start > 0) await nextTurn();
    const stream = start + SLICE < bytes.length;
    text += decoder.decode(bytes.subarray(start, start + SLICE), { stream });
  }
  // Asking for a character joins the slices in a turn of its own; else the parser would do it in its own.
  text.charCodeAt(0);
  await nextTurn();
  return text;
}

function isMostlyAscii(buffer: Buffer): boolean {
  const most = buffer.length / ASCII_SLICE / MOSTLY_ASCII;
  let others = 0;
  for (let start = 0; start < buffer.length && others <= most; start += ASCII_SLICE) {
    if (!isAscii(buffer.subarray(start, start + ASCII_SLICE))) others++;
  }
  return others <= most;
}

/** Most values of a body whose numbers are looked at one by one: some milliseconds. */
const MAX_VALUES_WITH_FORMS = 20_000;

interface BodyText {
  text: string;
  /** True where JavaScript loses how some number was written, and the body is small enough to keep it. */
  hasForms: boolean;
}

/** Text of the body, whose bytes are released before the text is parsed. @throws as readJsonText. */
async function bodyText(c: Context, memory: RequestMemory): Promise<BodyText> {
  const bytes = new Uint8Array(await c.req.arrayBuffer());
  // The context lives until the answer is made, but the bytes are not read again.
  c.req.bodyCache = {};
  const size = await checkedSize(bytes);
  memory.holdBody(REQUEST_BYTES + bodyMemory(bytes.length, size));
  const hasForms = size.mayLoseForms && size.values <= MAX_VALUES_WITH_FORMS;
  const text = await decoded(bytes);
  await turnAfter(text);
  return { text, hasForms };
}

/**
 * The text of a body that is to be JSON, and that can be parsed without a stall.
 * @param memory holds the memory that the body will take, before it is parsed.
 * @throws ApiError 400 where it is not UTF-8 or too large; 413, 429 where there is no memory for it.
 */
export async function readJsonText(c: Context, memory: RequestMemory): Promise<string> {
  return (await bodyText(c, memory)).text;
}

/**
 * Parses the body as JSON, which remembers how its numbers were written. @param mayBeEmpty true where an
 * empty body means an empty object. @throws as readJsonText; ApiError 400 where it is not JSON.
 */
export async function readJson(c: Context, memory: RequestMemory, mayBeEmpty = false): Promise<unknown> {
  const { text, hasForms } = await bodyText(c, memory);
  if (text === '' && mayBeEmpty) return {};
  const value = parsed(text, hasForms);
  await turnAfter(text);
  return value;
}

function parsed(text: string, hasForms: boolean): unknown {
  try {
    return hasForms ? parseWritten(text) : JSON.parse(text);
  } catch (error) {
    const reason = messageOf(error);
    // The parser quotes the text around the error; a line of it is enough.
    throw new ApiError(400, `The body is not valid JSON: ${reason.slice(0, 200)}`, { code: 'invalid_json' });
  }
}
