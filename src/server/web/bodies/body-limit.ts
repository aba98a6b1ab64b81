import type { IncomingMessage } from 'node:http';
import type { Context, MiddlewareHandler } from 'hono';
import type { AppEnv } from '../app-env.js';
import { ApiError } from '../errors.js';
import { bodyCoding, plainBody } from './inflate-body.js';
import { readBody } from './read-body.js';

export interface BodyLimitOptions {
  /** Longest body, in bytes. */
  maxSize: number;
  /** Milliseconds without new bytes after which an unfinished body is refused; default: no limit. */
  stallLimitMs?: number | undefined;
  /** True for requests whose route reads the body itself, as it comes; default: there are none. */
  isStreamed?: (method: string, path: string) => boolean;
  onError: (c: Context) => Response;
}

/**
 * Reads the body, and refuses one that is too long or that there is no memory for: by its declared length before it is
 * read, else as it grows. Node holds senders to the length that they declare. A sender that stops in the middle is
 * refused too. Hono's own limit wraps a body without a length in a second request, which Hono's server for Node does
 * not accept. What comes compressed is inflated, within the same limits: the routes read it as if it had been sent so.
 */
export function bodyLimit({
  maxSize,
  stallLimitMs,
  isStreamed = () => false,
  onError,
}: BodyLimitOptions): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    if (isStreamed(c.req.method, c.req.path)) return next();
    const declared = c.req.header('content-length');
    if (declared !== undefined && Number(declared) > maxSize) return onError(c);
    if (declared === '0' || c.req.method === 'GET' || c.req.method === 'HEAD') return next();
    const coding = bodyCoding(c.req.header('content-encoding'));
    const reading = readBody(c, declared === undefined ? null : Number(declared), maxSize);
    const bytes = await unlessStalled(reading, c.env?.incoming, stallLimitMs);
    if (bytes === null) return onError(c);
    const plain = await plainBody(new Uint8Array(bytes), coding, maxSize, c.get('memory'));
    // The cache holds promises, whatever its type says.
    c.req.bodyCache.arrayBuffer = Promise.resolve(plain.buffer) as never;
    return next();
  };
}

/** Awaits a promise. @throws ApiError 408 where nothing has come for the limit. */
export async function unlessStalled<T>(
  reading: Promise<T>,
  incoming: IncomingMessage | undefined,
  limitMs: number | undefined,
): Promise<T> {
  if (incoming === undefined || limitMs === undefined || incoming.complete) return reading;
  const { socket } = incoming;
  let seen = socket.bytesRead;
  let timer: NodeJS.Timeout | undefined;
  const stalled = new Promise<never>((_, reject) => {
    timer = setInterval(() => {
      if (socket.bytesRead === seen && !incoming.complete) reject(bodyStalled(limitMs));
      seen = socket.bytesRead;
    }, limitMs);
  });
  try {
    return await Promise.race([reading, stalled]);
  } finally {
    clearInterval(timer);
  }
}

function bodyStalled(limitMs: number): ApiError {
  const message = `The body is not whole, and nothing has come of it for ${limitMs / 1000} s.`;
  return new ApiError(408, message, { code: 'body_timeout', headers: { connection: 'close' } });
}
