import type { IncomingMessage } from 'node:http';
import type { Context } from 'hono';
import { REQUEST_BYTES, textMemory } from './memory-estimates.js';
import type { RequestMemory } from './request-memory.js';
import type { AppEnv } from './routes/route.js';

/** Longest body, in bytes, that the HTTP library reads, which is the shortest way. */
export const SMALL_BODY = 64 * 1024;
/** Bytes held ahead of those received, of a body with a declared length: a slow sender does not hold all of it. */
const AHEAD = 1024 * 1024;

/**
 * Reads a whole body into memory held for the request as it comes; null where it is longer than `maxSize`.
 * @param declared its declared length; null: none. @throws ApiError 413, 429 where there is no memory for it.
 */
export async function readBody(
  c: Context<AppEnv>,
  declared: number | null,
  maxSize: number,
): Promise<ArrayBuffer | null> {
  const memory = c.get('memory');
  // The library's stream would copy each chunk.
  const source = () => c.env?.incoming?.iterator({ destroyOnReturn: false }) ?? c.req.raw.body;
  if (declared === null) {
    memory.holdBody(REQUEST_BYTES + SMALL_BODY);
    return readWithin(source(), { length: null, maxSize, memory });
  }
  memory.expectBody(REQUEST_BYTES + textMemory(declared));
  if (declared > SMALL_BODY) return readWithin(source(), { length: declared, maxSize, memory });
  memory.holdBody(REQUEST_BYTES + declared);
  return c.req.arrayBuffer();
}

/** The same of a request without a Context, into bytes of the body's declared length. @throws ApiError 429 */
export async function longBody(
  incoming: IncomingMessage,
  into: Uint8Array<ArrayBuffer>,
  memory: RequestMemory,
): Promise<Uint8Array<ArrayBuffer>> {
  const { length } = into;
  await readWithin(incoming.iterator({ destroyOnReturn: false }), { length, maxSize: length, memory, into });
  return into;
}

interface Bounds {
  length: number | null;
  maxSize: number;
  memory: RequestMemory;
  /** Where the body goes, where its length is known; default: into new memory. */
  into?: Uint8Array<ArrayBuffer>;
}

async function readWithin(
  body: AsyncIterable<Uint8Array> | null,
  { length, maxSize, memory, into }: Bounds,
): Promise<ArrayBuffer | null> {
  if (body === null) return new ArrayBuffer(0);
  // Memory pages that nothing has been written to cost nothing.
  let whole: Uint8Array<ArrayBuffer> | null = into ?? new Uint8Array(length ?? SMALL_BODY);
  let refusal: unknown;
  let size = 0;
  for await (const chunk of body) {
    const end = size + chunk.length;
    if (end > maxSize) return null;
    try {
      if (whole !== null) whole = withRoom(whole, { size, end, length, maxSize, memory });
      whole?.set(chunk, size);
    } catch (error) {
      // A client that is still sending would not read the refusal: the rest is received and dropped.
      refusal = error;
      whole = null;
      memory.clear();
    }
    size = end;
  }
  if (whole === null) throw refusal;
  if (into !== undefined) return into.buffer;
  return size === whole.length ? whole.buffer : whole.buffer.slice(0, size);
}

/** The bytes, or a longer copy of them, with room up to `end`. @throws ApiError 413, 429. */
function withRoom(
  bytes: Uint8Array<ArrayBuffer>,
  { size, end, length, maxSize, memory }: Bounds & { size: number; end: number },
): Uint8Array<ArrayBuffer> {
  if (length !== null) {
    memory.holdBody(REQUEST_BYTES + Math.min(length, end + AHEAD));
    return bytes;
  }
  if (end <= bytes.length) return bytes;
  const longer = new Uint8Array(Math.min(maxSize, 2 * Math.max(end, bytes.length)));
  // The body grows further, as far as is known, and exists twice while it is copied.
  memory.expectBody(REQUEST_BYTES + textMemory(end));
  memory.holdBody(REQUEST_BYTES + bytes.length + longer.length);
  longer.set(bytes.subarray(0, size));
  return longer;
}
