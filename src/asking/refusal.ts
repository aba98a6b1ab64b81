import { asSentence } from '../../base/sentences.js';
import { plainText } from '../terminal/plain-text.js';
import { AskingError } from './asker.js';

/** The error of an answer that is none, in a sentence of the server's where it has one. */
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

/** {"error": {"message", "code"}}, as a whole answer or as a frame of a stream; null where it is nothing like it. */
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
