import { createGunzip, createInflate } from 'node:zlib';
import { InferError } from '../../callbacks/infer/infer-error.js';
import { malformed } from '../serving/protocol/malformed.js';
import { bodyTooLarge } from './read-json.js';

const INFLATERS = { gzip: createGunzip, deflate: createInflate } as const;

export interface InflateLimits {
  /** Bytes that the body may have when it is inflated. */
  maxBytes: number;
  /** Called as the body grows, with the bytes that it has. @throws where there is no memory for them */
  hold(bytes: number): void;
}

/**
 * The body as it was before its client compressed it.
 * @throws InferError for a coding that is not known, or that the body is not in; ApiError 413 where it is longer than a body may be
 */
export async function inflatedBody(
  bytes: Uint8Array,
  contentEncoding: string,
  { maxBytes, hold }: InflateLimits,
): Promise<Uint8Array> {
  const coding = contentEncoding.trim().toLowerCase();
  if (coding === 'identity' || coding === '') return bytes;
  if (coding !== 'gzip' && coding !== 'deflate') {
    throw new InferError('Unsupported compression type', 'unsupported');
  }
  const parts: Uint8Array[] = [];
  let length = 0;
  const inflater = INFLATERS[coding]();
  inflater.end(bytes);
  try {
    for await (const part of inflater as AsyncIterable<Uint8Array>) {
      length += part.length;
      if (length > maxBytes) throw bodyTooLarge(maxBytes);
      // Its parts, and the whole that is made of them.
      hold(2 * length);
      parts.push(part);
    }
  } catch (error) {
    if (!isOfZlib(error)) throw error;
    throw malformed(`failed to decompress the request body, which is said to be ${coding}`);
  } finally {
    inflater.destroy();
  }
  return Buffer.concat(parts, length);
}

/** The body is not in the coding that it is said to be in. */
function isOfZlib(error: unknown): boolean {
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' && code.startsWith('Z_');
}
