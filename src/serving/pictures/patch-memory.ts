import { PicturesBusyError } from '../../../models/images/picture-error.js';

/** Floats of one picture, and the way to give them back, once. */
export interface PatchPlace {
  floats: Float32Array;
  giveBack(): void;
}

interface Range {
  begin: number;
  end: number;
}

interface Waiting {
  bytes: number;
  begin(place: PatchPlace): void;
}

/**
 * Memory that threads share, in which pictures that are being seen have their patches. There is one block of it, made once: a worker's
 * garbage collector counts no shared memory, so that blocks of their own would stay for as long as it likes.
 *
 *   | picture A | free | picture B      | free          |        first fit; those that find no room wait in their order
 */
export class PatchMemory {
  readonly #total: number;
  readonly #maxWaiting: number;
  #block: SharedArrayBuffer | null = null;
  /** Bytes that are taken, ascending. */
  #taken: Range[] = [];
  #waiting: Waiting[] = [];

  /** @param maxWaiting more are refused with a PicturesBusyError */
  constructor(total: number, maxWaiting: number) {
    this.#total = total;
    this.#maxWaiting = maxWaiting;
  }

  /** Takes room for a picture's patches. One that is larger than all there is waits for all of it, and gets a block of its own. */
  take(bytes: number): Promise<PatchPlace> {
    const place = this.#waiting.length === 0 ? this.#placeFor(bytes) : null;
    if (place !== null) return Promise.resolve(place);
    if (this.#waiting.length >= this.#maxWaiting)
      return Promise.reject(new PicturesBusyError('Too many pictures are waiting; try again later.'));
    return new Promise((begin) => this.#waiting.push({ bytes, begin }));
  }

  #placeFor(bytes: number): PatchPlace | null {
    const size = Math.min(bytes, this.#total);
    const index = this.#firstFit(size);
    if (index < 0) return null;
    const begin = this.#taken[index - 1]?.end ?? 0;
    const range = { begin, end: begin + size };
    this.#taken.splice(index, 0, range);
    const count = bytes / Float32Array.BYTES_PER_ELEMENT;
    this.#block ??= new SharedArrayBuffer(this.#total);
    const floats =
      bytes > this.#total
        ? new Float32Array(new SharedArrayBuffer(bytes))
        : new Float32Array(this.#block, begin, count);
    return { floats, giveBack: () => this.#giveBack(range) };
  }

  /** Index in #taken of the entry after the first gap of that size; -1: there is none. */
  #firstFit(size: number): number {
    let end = 0;
    for (const [index, taken] of this.#taken.entries()) {
      if (taken.begin - end >= size) return index;
      end = taken.end;
    }
    return this.#total - end >= size ? this.#taken.length : -1;
  }

  #giveBack(range: Range): void {
    const index = this.#taken.indexOf(range);
    if (index < 0) return;
    this.#taken.splice(index, 1);
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const place = this.#placeFor(first.bytes);
      if (place === null) return;
      this.#waiting.shift();
      first.begin(place);
    }
  }
}
