import { messageOf } from '../../base/error-text.js';
import { isObject } from '../../base/option-values.js';
import { parseWritten } from '../../base/written-json.js';
import type { FileLine } from './split-lines.js';

/** A request of a batch. */
export interface BatchRequest {
  customId: string;
  url: string;
  body: Record<string, unknown>;
}

/** A line of the input that is no request, with the reason. */
export interface BadLine {
  line: number;
  customId: string | null;
  code: 'invalid_line' | 'duplicate_custom_id';
  message: string;
}

/** The routes that a batch may ask. */
export const BATCH_URLS = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/responses',
  '/v1/embeddings',
  '/v1/rerank',
  '/v1/score',
] as const;

/** What lines have to be. */
export interface LineRules {
  /** Bytes of the longest line. */
  maxLineBytes: number;
  /** Characters of the longest custom_id; default: any number. */
  maxIdLength?: number;
  /** Routes that may be asked; default: those of BATCH_URLS. */
  urls?: readonly string[];
}

/** Characters of a line whose numbers are kept as they were written, which templates show; more would take long. */
const MAX_WRITTEN = 2 ** 20;

const FIELDS = ['custom_id', 'method', 'url', 'body'];
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

/** Parses a line; null for an empty one. The route itself checks `body`. */
export function parseBatchLine(line: FileLine, rules: LineRules): BatchRequest | BadLine | null {
  const { maxLineBytes, maxIdLength = Number.POSITIVE_INFINITY, urls = BATCH_URLS } = rules;
  const bad = (message: string, customId: string | null = null): BadLine => ({
    line: line.number,
    customId,
    code: 'invalid_line',
    message: `Line ${line.number} ${message}`,
  });
  if (line.bytes === null) return bad(`is longer than ${maxLineBytes} bytes (--max-body-bytes).`);
  let text: string;
  try {
    text = UTF8.decode(line.bytes);
  } catch {
    return bad('is not UTF-8.');
  }
  if (text.trim() === '') return null;
  let value: unknown;
  try {
    value = text.length <= MAX_WRITTEN ? parseWritten(text) : JSON.parse(text);
  } catch (error) {
    return bad(`is not JSON: ${messageOf(error)}.`);
  }
  if (!isObject(value)) return bad('must be an object with custom_id, method, url and body.');
  const id = value.custom_id;
  if (typeof id !== 'string' || id === '') return bad('has no custom_id, a text that is its own.');
  if (id.length > maxIdLength) return bad(`has a custom_id of more than ${maxIdLength} characters.`);
  const unknown = Object.keys(value).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined)
    return bad(`has an unknown field ${unknown}; expected: ${FIELDS.join(', ')}.`, id);
  if (value.method !== 'POST')
    return bad(`has the method ${JSON.stringify(value.method)}; it must be "POST".`, id);
  if (!urls.some((url) => url === value.url)) {
    const expected = urls.length === 1 ? `"${urls[0]}"` : `one of ${urls.join(', ')}`;
    return bad(`has the url ${JSON.stringify(value.url)}; it must be ${expected}.`, id);
  }
  if (!isObject(value.body)) return bad('has no body, an object with the request.', id);
  if (value.body.stream === true) return bad('asks for a stream; a batch takes whole answers.', id);
  if (value.body.background === true)
    return bad('asks for a response in the background; a batch takes whole answers.', id);
  const url = value.url as string;
  // A response of a batch is never continued: storing it would only take the place of others.
  const body = url === '/v1/responses' ? { store: false, ...value.body } : value.body;
  return { customId: id, url, body };
}
