import type { Context, MiddlewareHandler } from 'hono';
import { readBody } from './read-body.js';
import type { AppEnv } from './routes/route.js';

export interface BodyLimitOptions {
  /** Bytes. */
  maxSize: number;
  onError: (c: Context) => Response;
}

/**
 * Reads the body, and refuses one that is too long, or that there is no memory for: by its declared length before anything of
 * it is read, and where none is declared as it grows. Node holds senders to the length that they declare. Hono's own limit
 * makes a second request around a body without one, which the request of its server for Node does not let it.
 */
export function bodyLimit({ maxSize, onError }: BodyLimitOptions): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const declared = c.req.header('content-length');
    if (declared !== undefined && Number(declared) > maxSize) return onError(c);
    if (declared === '0' || c.req.method === 'GET' || c.req.method === 'HEAD') return next();
    const bytes = await readBody(c, declared === undefined ? null : Number(declared), maxSize);
    if (bytes === null) return onError(c);
    // A promise is what is kept there, whatever the type says.
    c.req.bodyCache.arrayBuffer = Promise.resolve(bytes) as never;
    return next();
  };
}
