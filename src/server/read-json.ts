import type { Context } from 'hono';
import { ApiError } from './openai/errors.js';

/** Bytes of the longest body: some hundred thousand tokens of prompt. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024;

const strict = new TextDecoder('utf-8', { fatal: true });

export function bodyTooLarge(): ApiError {
  return new ApiError(413, `The body is longer than ${MAX_BODY_BYTES} bytes.`, { code: 'body_too_large' });
}

/** The body as JSON. @throws ApiError 400 where it is not UTF-8 or not JSON. */
export async function readJson(c: Context): Promise<unknown> {
  const bytes = await c.req.arrayBuffer();
  let text: string;
  try {
    text = strict.decode(bytes);
  } catch {
    throw new ApiError(400, 'The body is not valid UTF-8.', { code: 'invalid_json' });
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    // The parser quotes the text around the error; a line of it is enough.
    throw new ApiError(400, `The body is not valid JSON: ${reason.slice(0, 200)}`, { code: 'invalid_json' });
  }
}
