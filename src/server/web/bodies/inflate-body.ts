import { Readable, type Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import * as zlib from 'node:zlib';
import { ApiError } from '../errors.js';
import { REQUEST_BYTES } from '../memory/memory-estimates.js';
import type { RequestMemory } from '../memory/request-memory.js';
import { bodyTooLarge } from './read-json.js';

/** Bytes that an inflater gives at once. */
const chunkSize = 64 * 1024;

/** Node.js has zstd from 22.15 on. */
interface Zstd {
  createZstdDecompress?(options: { chunkSize: number; params: Record<number, number> }): Transform;
  constants: { ZSTD_d_windowLogMax?: number };
}

const { createZstdDecompress, constants } = zlib as unknown as Zstd;
/** The longest window that a content coding may have is 8 MiB: RFC 9659. */
const ZSTD_WINDOW_LOG = 23;

/** What takes a coding off. They work in the library's threads. */
const INFLATERS: ReadonlyMap<string, () => Transform> = new Map([
  ['gzip', () => zlib.createGunzip({ chunkSize })],
  ['deflate', () => zlib.createInflate({ chunkSize })],
  ['br', () => zlib.createBrotliDecompress({ chunkSize })],
  ...(createZstdDecompress === undefined
    ? []
    : ([
        [
          'zstd',
          () =>
            createZstdDecompress({
              chunkSize,
              params: { [constants.ZSTD_d_windowLogMax!]: ZSTD_WINDOW_LOG },
            }),
        ],
      ] as const)),
]);

/** The codings of bodies that this Node.js can take off, as an Accept-Encoding. */
export const ACCEPTED_CODINGS = [...INFLATERS.keys()].join(', ');

/**
 * The coding of a body; null: it is as it is.
 * @param contentEncoding the header @throws ApiError 415 for one that is not known here, or for several on top of each other
 */
export function bodyCoding(contentEncoding: string | undefined): string | null {
  const names = (contentEncoding ?? '').toLowerCase().split(',');
  const codings = names.map((name) => name.trim()).filter((name) => name !== '' && name !== 'identity');
  // An older name of it, which RFC 9110 asks to take.
  const coding = codings[0] === 'x-gzip' ? 'gzip' : codings[0];
  if (coding === undefined) return null;
  if (codings.length === 1 && INFLATERS.has(coding)) return coding;
  const message = `The Content-Encoding '${contentEncoding}' is not supported; one of ${ACCEPTED_CODINGS} is, or none.`;
  const headers = { 'accept-encoding': ACCEPTED_CODINGS };
  throw new ApiError(415, message, { code: 'unsupported_encoding', headers });
}

/**
 * The bytes as they were before their sender compressed them, part by part, as they are asked for.
 * @throws ApiError 400 where they are not in the coding or not whole; what the chunks throw
 */
export async function* inflated(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  coding: string,
): AsyncGenerator<Uint8Array> {
  let ofSource: { error: unknown } | null = null;
  async function* noted() {
    try {
      yield* chunks;
    } catch (error) {
      ofSource = { error };
      throw error;
    }
  }
  const inflater = INFLATERS.get(coding)!();
  const fed = pipeline(Readable.from(noted(), { objectMode: false }), inflater);
  // The error comes out of the iteration too.
  fed.catch(() => {});
  try {
    for await (const part of inflater as AsyncIterable<Uint8Array>) yield part;
  } catch {
    const { error } = (ofSource as { error: unknown } | null) ?? { error: notInCoding(coding) };
    throw error;
  } finally {
    inflater.destroy();
  }
}

function notInCoding(coding: string): ApiError {
  const message = `The body could not be decompressed: it is not in the coding ${coding}, or not whole.`;
  return new ApiError(400, message, { code: 'invalid_encoding' });
}

export interface InflateLimits {
  /** Bytes that the body may have when it is inflated. */
  maxBytes: number;
  /** Called as the body grows, with the bytes that it takes. @throws where there is no memory for them */
  hold(bytes: number): void;
}

/** Copies of a body that exist while it is inflated: its parts, the whole that is made of them, and the inflater's window. */
const COPIES = 3;

/** The whole body. @throws as `inflated`; ApiError 413 where it is longer than a body may be */
export async function inflatedBody(
  bytes: Uint8Array,
  coding: string,
  { maxBytes, hold }: InflateLimits,
): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of inflated([bytes], coding)) {
    length += part.length;
    if (length > maxBytes) throw bodyTooLarge(maxBytes);
    hold(COPIES * length);
    parts.push(part);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The body of a request, which was read into its memory. @throws as `inflatedBody`; ApiError 429, 413 where there is no memory for it */
export async function plainBody(
  bytes: Uint8Array<ArrayBuffer>,
  coding: string | null,
  maxBytes: number,
  memory: RequestMemory,
): Promise<Uint8Array<ArrayBuffer>> {
  if (coding === null) return bytes;
  const hold = (inflatedBytes: number) => memory.holdBody(REQUEST_BYTES + bytes.length + inflatedBytes);
  return inflatedBody(bytes, coding, { maxBytes, hold });
}
