import type { Context, MiddlewareHandler } from 'hono';

export interface BodyLimitOptions {
  /** Bytes. */
  maxSize: number;
  onError: (c: Context) => Response;
}

/**
 * Refuses bodies that are too long: by their declared length, which Node holds their senders to, or where none is declared
 * as soon as more has come. Hono's own makes a second request around such a body, which the request of its server for Node
 * does not let it.
 */
export function bodyLimit({ maxSize, onError }: BodyLimitOptions): MiddlewareHandler {
  return async (c, next) => {
    const declared = c.req.header('content-length');
    if (declared !== undefined) return Number(declared) > maxSize ? onError(c) : next();
    if (c.req.method === 'GET' || c.req.method === 'HEAD') return next();
    const bytes = await readUpTo(c.req.raw.body, maxSize);
    if (bytes === null) return onError(c);
    // A promise is what is kept there, whatever the type says.
    c.req.bodyCache.arrayBuffer = Promise.resolve(bytes) as never;
    return next();
  };
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
