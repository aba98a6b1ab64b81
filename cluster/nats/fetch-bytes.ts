import { crc32 } from 'node:zlib';
import type { BlocksAnswer } from './messages.js';

/** Questions that are under way at once. */
const MAX_ASKED = 4;

export interface BytesFetch {
  /** Most bytes of one answer. */
  maxBytes: number;
  ask: (offset: number, length: number) => Promise<BlocksAnswer | null>;
  /** False: the bytes are no longer needed. */
  isWanted: () => boolean;
}

/** Bytes [offset, offset + length) of what another process has, slice by slice; null: one of them does not come. */
export async function fetchBytes(
  offset: number,
  length: number,
  fetch: BytesFetch,
): Promise<Uint8Array | null> {
  const part = new Uint8Array(length);
  let isWhole = true;
  let at = 0;
  const fetchNext = async (): Promise<void> => {
    while (isWhole && at < length) {
      const start = at;
      const size = Math.min(fetch.maxBytes, length - start);
      at += size;
      const slice = await fetchSlice(fetch, offset + start, size);
      if (slice === null) isWhole = false;
      else part.set(slice, start);
    }
  };
  await Promise.all(Array.from({ length: MAX_ASKED }, fetchNext));
  return isWhole ? part : null;
}

async function fetchSlice(
  { ask, isWanted }: BytesFetch,
  offset: number,
  length: number,
): Promise<Uint8Array | null> {
  if (!isWanted()) return null;
  const answer = await ask(offset, length);
  if (answer === null || answer.bytes.length !== length || crc32(answer.bytes) !== answer.sum) return null;
  return answer.bytes;
}
