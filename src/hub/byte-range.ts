import { setTimeout } from 'node:timers/promises';
import { HubError } from '../errors/user-errors.js';

/** A file of the hub. */
export interface RemoteSource {
  /** Name of the file in errors: ORG/NAME/path. */
  name: string;
  url: string;
  headers: Readonly<Record<string, string>>;
}

export interface RangeOptions {
  fetch: typeof fetch;
  signal?: AbortSignal | undefined;
  /** Wait before the second attempt. */
  retryDelayMs?: number | undefined;
}

const MAX_ATTEMPTS = 3;
const LIMIT_MS = 60_000;

/**
 * Fetches bytes [start, start + length) of a file, which must have them. A server without ranges sends the file from its beginning; no more
 * of it is read than is needed. @throws HubError
 */
export async function fetchRange(
  source: RemoteSource,
  start: number,
  length: number,
  { fetch, signal, retryDelayMs = 1_000 }: RangeOptions,
): Promise<Buffer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptRange(source, start, length, fetch, signal);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof HubError) throw error;
      if (attempt === MAX_ATTEMPTS) {
        const { message, cause } = error as Error & { cause?: Error };
        throw new HubError(
          `${source.name} could not be read in ${MAX_ATTEMPTS} attempts (${cause?.message || message}).`,
        );
      }
      await setTimeout(retryDelayMs * attempt, undefined, { signal });
    }
  }
}

async function attemptRange(
  { name, url, headers }: RemoteSource,
  start: number,
  length: number,
  fetchWith: typeof fetch,
  signal: AbortSignal | undefined,
): Promise<Buffer> {
  const timed = AbortSignal.timeout(LIMIT_MS);
  const response = await fetchWith(url, {
    headers: { ...headers, range: `bytes=${start}-${start + length - 1}` },
    signal: signal === undefined ? timed : AbortSignal.any([timed, signal]),
  });
  const { status, body } = response;
  if ((status !== 200 && status !== 206) || body === null) {
    await body?.cancel();
    if (status === 429 || status >= 500) throw new Error(`the hub answers ${status}`);
    throw new HubError(`${name} cannot be read: the hub answers ${status}.`);
  }
  return firstBytes(body, status === 206 ? 0 : start, length);
}

/** `length` bytes of a stream after the first `skipped`; the rest is not read. */
async function firstBytes(
  body: NonNullable<Response['body']>,
  skipped: number,
  length: number,
): Promise<Buffer> {
  const found = Buffer.alloc(length);
  let at = -skipped;
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    const from = Math.max(0, -at);
    if (from < chunk.length)
      found.set(chunk.subarray(from, from + length - Math.max(0, at)), Math.max(0, at));
    at += chunk.length;
    if (at >= length) return found;
  }
  throw new Error('it ended early');
}
