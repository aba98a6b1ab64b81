import type { IncomingMessage } from 'node:http';
import type { Context } from 'hono';
import type { AppEnv } from '../app-env.js';
import { clientLeft } from '../errors.js';
import { REQUEST_BYTES, textMemory } from '../memory/memory-estimates.js';
import type { RequestMemory } from '../memory/request-memory.js';

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
  const incoming = c.env?.incoming;
  // The library's stream would copy each chunk.
  const source = () => incoming?.iterator({ destroyOnReturn: false }) ?? chunksOf(c.req.raw);
  if (declared === null) {
    memory.holdBody(REQUEST_BYTES + SMALL_BODY);
    return bufferOf(await readWithin(source(), { length: null, maxSize, memory }));
  }
  memory.expectBody(REQUEST_BYTES + textMemory(declared));
  if (declared > SMALL_BODY || incoming === undefined)
    return bufferOf(await readWithin(source(), { length: declared, maxSize, memory }));
  memory.holdBody(REQUEST_BYTES + declared);
  return c.req.arrayBuffer();
}

/**
 * The body of a program's request, up to the abort of its signal. That of a client's request ends by itself when it leaves.
 * @throws ApiError 499
 */
export async function* chunksOf({ body, signal }: Request): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader();
  if (reader === undefined) return;
  const leave = () => void reader.cancel(signal.reason).catch(() => {});
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      // A cancelled stream ends as one does that is whole.
      if (signal.aborted) throw clientLeft();
      if (done) return;
      yield value;
    }
  } finally {
    signal.removeEventListener('abort', leave);
    // A body that is too long is not read to its end.
    leave();
  }
}

function bufferOf(bytes: Uint8Array<ArrayBuffer> | null): ArrayBuffer | null {
  return bytes === null ? null : bytes.buffer;
}

/** Where the memory of bodies comes from. */
export interface BodyRoom {
  take(bytes: number): Uint8Array<ArrayBuffer>;
  /** It is not used any more. */
  give(bytes: Uint8Array<ArrayBuffer>): void;
}

const NEW_MEMORY: BodyRoom = { take: (bytes) => new Uint8Array(bytes), give: () => {} };

/** The same of a request without a Context. @param length that its sender has declared @throws ApiError 429 */
export async function longBody(
  incoming: IncomingMessage,
  length: number,
  room: BodyRoom,
  memory: RequestMemory,
): Promise<Uint8Array<ArrayBuffer>> {
  const body = incoming.iterator({ destroyOnReturn: false });
  return (await readWithin(body, { length, maxSize: length, memory, room }))!;
}

interface Bounds {
  length: number | null;
  maxSize: number;
  memory: RequestMemory;
  /** Default: new memory. */
  room?: BodyRoom;
}

async function readWithin(
  body: AsyncIterable<Uint8Array>,
  { length, maxSize, memory, room = NEW_MEMORY }: Bounds,
): Promise<Uint8Array<ArrayBuffer> | null> {
  let whole: Uint8Array<ArrayBuffer> | null = room.take(Math.min(length ?? SMALL_BODY, SMALL_BODY));
  let refusal: unknown;
  let size = 0;
  for await (const chunk of body) {
    const end = size + chunk.length;
    if (end > maxSize) return null;
    try {
      if (whole !== null) whole = withRoom(whole, { size, end, length, maxSize, memory, room });
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
  return size === whole.length ? whole : whole.slice(0, size);
}

/** By how much memory for a body of a declared length grows: who declares much and sends little gets little. */
const GROWTH = 16;

/** The bytes, or a longer copy of them, with room up to `end`. @throws ApiError 413, 429. */
function withRoom(
  bytes: Uint8Array<ArrayBuffer>,
  { size, end, length, maxSize, memory, room }: Required<Bounds> & { size: number; end: number },
): Uint8Array<ArrayBuffer> {
  if (length !== null) memory.holdBody(REQUEST_BYTES + Math.min(length, end + AHEAD));
  if (end <= bytes.length) return bytes;
  if (length === null) memory.expectBody(REQUEST_BYTES + textMemory(end));
  const most = length ?? maxSize;
  const longer = room.take(Math.min(most, (length === null ? 2 : GROWTH) * Math.max(end, bytes.length)));
  // The body grows further, as far as is known, and exists twice while it is copied.
  if (length === null) memory.holdBody(REQUEST_BYTES + bytes.length + longer.length);
  longer.set(bytes.subarray(0, size));
  room.give(bytes);
  return longer;
}
