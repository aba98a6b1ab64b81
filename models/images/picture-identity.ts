import { createHash } from 'node:crypto';
import type { JsonObject } from '../checkpoints/file-reading.js';
import type { Pixels } from './resize.js';

/** Changes with what a digest is made of. */
const VERSION = 'picture 1';
/** Bits of an id's word: with any vocabulary an id stays below 2^31. */
const WORD_BITS = 30;
const WORDS_OF_DIGEST = 8;

/**
 * SHA-256 of a picture as a model sees it: of its decoded pixels, and of all that its patches depend on. Files of other kinds with the same
 * pixels have the same one.
 * @param settings of the PicturePreprocessor
 */
export function pictureDigest({ width, height, bytes }: Pixels, settings: JsonObject): Buffer {
  const head = `${VERSION}\n${ordered(settings)}\n${width} x ${height}\n`;
  return createHash('sha256').update(head).update(bytes).digest();
}

/**
 * Token ids that stand for a picture's rows in a prompt: `vocabSize` and a word of 30 bits each, of SHA-256 in counter mode. They are the
 * same in every process, and others for another picture or another tower.
 * @param digest of pictureDigest @param tower what the picture's rows depend on besides, such as a checksum of the tower's weights
 */
export function pictureIds(digest: Uint8Array, tower: string, count: number, vocabSize: number): Int32Array {
  const key = createHash('sha256').update(digest).update(tower).digest();
  const ids = new Int32Array(count);
  const counter = Buffer.alloc(4);
  for (let from = 0; from < count; from += WORDS_OF_DIGEST) {
    counter.writeUInt32BE(from / WORDS_OF_DIGEST);
    const block = createHash('sha256').update(key).update(counter).digest();
    for (let i = from; i < Math.min(count, from + WORDS_OF_DIGEST); i++)
      ids[i] = vocabSize + (block.readUInt32BE((i - from) * 4) >>> (32 - WORD_BITS));
  }
  return ids;
}

/** JSON with the keys of all objects in order. */
function ordered(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    part !== null && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
