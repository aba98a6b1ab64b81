import type { MiddlewareHandler } from 'hono';
import { REQUEST_BYTES, textMemory } from './memory-estimates.js';
import { bodyTooLarge } from './read-json.js';
import type { RequestMemory } from './request-memory.js';
import type { AppEnv } from './routes/route.js';

/** Bodies up to this length are read by the HTTP library, whose way is the shortest. */
const SMALL_BODY = 64 * 1024;
/** What is held beyond what has come, of a body whose length is declared: who sends slowly does not hold all of it. */
const AHEAD = 1024 * 1024;

/**
 * Refuses bodies that are too long, or that there is no memory for: by their declared length before anything of them is
 * read, and where none is declared as they grow. Node holds senders to the length that they declare. Hono's own limit makes a
 * second request around a body without one, which the request of its server for Node does not let it.
 */
export function bodyLimit(maxSize: number): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const declared = declaredLength(c.req.header('content-length'));
    if (declared !== null) {
      if (declared > maxSize) throw bodyTooLarge(maxSize);
      if (declared === 0) return next();
    } else if (c.req.method === 'GET' || c.req.method === 'HEAD') return next();
    const memory = c.get('memory');
    if (declared !== null) {
      memory.checkBody(REQUEST_BYTES + textMemory(declared));
      if (declared <= SMALL_BODY) {
        memory.holdBody(REQUEST_BYTES + declared);
        return next();
      }
    }
    const bytes = await readWithin(c.req.raw.body, { declared, maxSize, memory });
    // A promise is what is kept there, whatever the type says.
    c.req.bodyCache.arrayBuffer = Promise.resolve(bytes) as never;
    return next();
  };
}

/** Null where none was declared, or what is none. */
function declaredLength(header: string | undefined): number | null {
  return header !== undefined && /^\d+$/.test(header) ? Number(header) : null;
}

interface Bounds {
  declared: number | null;
  maxSize: number;
  memory: RequestMemory;
}

/** All of a body. @throws ApiError 413, 429. */
async function readWithin(body: ReadableStream<Uint8Array> | null, bounds: Bounds): Promise<ArrayBuffer> {
  const { declared, maxSize, memory } = bounds;
  if (body === null) return new ArrayBuffer(0);
  // Pages that nothing has been written to take no memory.
  let whole = new Uint8Array(declared ?? SMALL_BODY);
  let size = 0;
  for await (const chunk of body) {
    const end = size + chunk.length;
    if (end > maxSize) throw bodyTooLarge(maxSize);
    if (end > whole.length) whole = grown(whole, Math.min(maxSize, Math.max(end, 2 * whole.length)), size);
    // What is copied while it grows is there twice.
    memory.holdBody(REQUEST_BYTES + (declared === null ? 2 * end : Math.min(declared, end + AHEAD)));
    whole.set(chunk, size);
    size = end;
  }
  return size === whole.length ? whole.buffer : whole.buffer.slice(0, size);
}

function grown(bytes: Uint8Array, length: number, used: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length);
  larger.set(bytes.subarray(0, used));
  return larger;
}
