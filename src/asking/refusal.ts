import { asSentence } from '../../base/sentences.js';
import { plainText } from '../terminal/plain-text.js';
import { AskingError } from './asker.js';

/** Makes the error for a response that is no answer, with the server's own sentence where it has one. */
export async function refusalOf(response: Response, address: string | null): Promise<AskingError> {
  const text = await response.text().catch(() => '');
  if (response.status === 401) {
    const where = address === null ? '' : ` of ${address}`;
    return new AskingError(
      `The server${where} wants an API key that it knows (--api-key, or SKEIN_API_KEY).`,
      'invalid_api_key',
    );
  }
  const told = errorOf(text);
  if (told !== null) return told;
  return new AskingError(`${address ?? 'The server'} answers ${response.status} and does not say why.`);
}

/**
 * The error in {"error": {"message", "code"}}, a whole answer or a frame of a stream; null where the text has no such
 * form.
 */
export function errorOf(json: string): AskingError | null {
  let body: { error?: { message?: unknown; code?: unknown } | string } | null;
  try {
    body = JSON.parse(json);
  } catch {
    return null;
  }
  const error = typeof body?.error === 'string' ? { message: body.error } : body?.error;
  if (typeof error?.message !== 'string') return null;
  return new AskingError(
    asSentence(plainText(error.message)),
    typeof error.code === 'string' ? error.code : null,
  );
}
