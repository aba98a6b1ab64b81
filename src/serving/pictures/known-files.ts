import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PictureFacts } from './picture-reader.js';

/** Most files whose pictures are known: some hundred bytes each. */
const MAX_FILES = 4096;
/** Bytes that are hashed in one turn of the event loop. */
const BYTES_IN_TURN = 2 ** 20;

/**
 * What files of pictures hold, by their SHA-256, for the next question on one: the ids in its prompt and the rows that are kept need its
 * picture's digest and size alone, so that it is neither decoded nor prepared again. Those used last stay.
 *
 *   file -> SHA-256 -> known     -> digest, size -> ids, kept rows
 *                  '-> not known -> decoded, prepared; then known
 */
export class KnownFiles {
  readonly #max: number;
  readonly #facts = new Map<string, PictureFacts>();
  readonly #counts = { read: 0, known: 0 };

  constructor(max = MAX_FILES) {
    this.#max = max;
  }

  /** How often a file's picture was not known, and how often it was. */
  get counts(): Readonly<{ read: number; known: number }> {
    return this.#counts;
  }

  get size(): number {
    return this.#facts.size;
  }

  /**
   * The picture of a file; one that is not known is found by `read`, and known from then on.
   * @param salt only requests with the same salt share known files, since the time taken would reveal what
   * was there
   */
  async of<Facts extends PictureFacts>(
    file: Uint8Array,
    salt: bigint,
    read: () => Promise<Facts>,
  ): Promise<{ facts: PictureFacts; read: Facts | null }> {
    const key = await keyOf(file, salt);
    const known = this.#facts.get(key);
    if (known !== undefined) {
      this.#counts.known++;
      this.#note(key, known);
      return { facts: known, read: null };
    }
    this.#counts.read++;
    const found = await read();
    const { digest, width, height } = found;
    this.#note(key, { digest, width, height });
    return { facts: found, read: found };
  }

  #note(key: string, facts: PictureFacts): void {
    this.#facts.delete(key);
    this.#facts.set(key, facts);
    if (this.#facts.size <= this.#max) return;
    const [oldest] = this.#facts.keys();
    this.#facts.delete(oldest!);
  }
}

async function keyOf(file: Uint8Array, salt: bigint): Promise<string> {
  const hash = createHash('sha256').update(`${salt} `);
  for (let at = 0; at < file.length; at += BYTES_IN_TURN) {
    if (at > 0) await nextTurn();
    hash.update(file.subarray(at, at + BYTES_IN_TURN));
  }
  return hash.digest('base64');
}
