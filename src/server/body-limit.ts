import type { IncomingMessage } from 'node:http';
import type { Context, MiddlewareHandler } from 'hono';
import { ApiError } from './openai/errors.js';
import type { AppEnv } from './routes/route.js';

export interface BodyLimitOptions {
  /** Bytes. */
  maxSize: number;
  /** How long nothing may come of a body that is not whole; not given: for ever. */
  stallLimitMs?: number | undefined;
  onError: (c: Context) => Response;
}

/**
 * Reads the body, and refuses one that is too long: by its declared length, which Node holds its sender to, or where none is
 * declared as soon as more has come. Hono's own makes a second request around such a body, which the request of its server
 * for Node does not let it. A sender that stops in the middle is refused too, whatever length it has announced.
 */
export function bodyLimit({ maxSize, stallLimitMs, onError }: BodyLimitOptions): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const declared = c.req.header('content-length');
    if (declared !== undefined && Number(declared) > maxSize) return onError(c);
    if (declared === '0' || c.req.method === 'GET' || c.req.method === 'HEAD') return next();
    const reading = declared === undefined ? readUpTo(c.req.raw.body, maxSize) : c.req.arrayBuffer();
    const bytes = await unlessStalled(reading, c.env?.incoming, stallLimitMs);
    if (bytes === null) return onError(c);
    // A promise is what is kept there, whatever the type says.
    c.req.bodyCache.arrayBuffer = Promise.resolve(bytes) as never;
    return next();
  };
}

/** @throws ApiError 408 where nothing has come for so long. */
async function unlessStalled<T>(
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

/** All of a body; null where it is longer. */
async function readUpTo(
  body: ReadableStream<Uint8Array> | null,
  maxSize: number,
): Promise<ArrayBuffer | null> {
  if (body === null) return new ArrayBuffer(0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxSize) return null;
    chunks.push(chunk);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole.buffer;
}
