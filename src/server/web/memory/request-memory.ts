import { ApiError } from '../errors.js';
import type { MemoryHold } from './held-memory.js';

/**
 * Memory that one HTTP request makes the server hold, from its headers to the last byte of its answer. A request that
 * needs more room than there is ends before the work begins: with 429 where others hold the room, so that it may come
 * again, and with 413 or 400 where it would never fit.
 */
export class RequestMemory {
  readonly #hold: MemoryHold;
  readonly #limit: number;

  constructor(hold: MemoryHold, limit: number) {
    this.#hold = hold;
    this.#limit = limit;
  }

  get bytes(): number {
    return this.#hold.bytes;
  }

  /**
   * Announces the bytes that the request's body will take in all, as far as they are known. @throws ApiError 429, 413
   * where it could not have them now.
   */
  expectBody(bytes: number): void {
    this.#hold.expected = bytes;
    this.#checkBody(bytes);
  }

  #checkBody(bytes: number): void {
    if (bytes > this.#limit) throw this.#neverFits(413, 'body', bytes, 'body_too_large');
    if (!this.#hold.hasRoomFor(bytes)) throw memoryFull();
  }

  /** Holds the bytes that the request's body takes in all. @throws ApiError 429, 413. */
  holdBody(bytes: number): void {
    this.#checkBody(bytes);
    this.#hold.resize(bytes);
  }

  /** Holds further bytes for the request's answer. @throws ApiError 429, 400. */
  addAnswer(bytes: number): void {
    const all = this.#hold.bytes + bytes;
    if (all > this.#limit) throw this.#neverFits(400, 'request', all, 'answer_too_large');
    if (!this.#hold.resize(all)) throw memoryFull();
  }

  /** Holds further bytes for what the request takes from what is stored. @throws ApiError 429, 413. */
  addTaken(bytes: number): void {
    const all = this.#hold.bytes + bytes;
    if (all > this.#limit) throw this.#neverFits(413, 'request', all, 'request_too_large');
    if (!this.#hold.resize(all)) throw memoryFull();
  }

  /** Holds further bytes until `letGo`. @returns what is wrong where there is no room; null: they are held */
  keep(bytes: number): string | null {
    const all = this.#hold.bytes + bytes;
    if (all > this.#limit) return this.#neverFitsText('request', all);
    return this.#hold.resize(all) ? null : MEMORY_FULL;
  }

  /** Gives back bytes that `keep` took. */
  letGo(bytes: number): void {
    this.#hold.resize(Math.max(0, this.#hold.bytes - bytes));
  }

  /** Holds at least this number of bytes in all. Returns false where there is no room. */
  raiseTo(bytes: number): boolean {
    return this.#hold.resize(Math.max(bytes, this.#hold.bytes));
  }

  /** Gives all bytes back; the request continues with none. */
  clear(): void {
    this.#hold.resize(0);
  }

  release(): void {
    this.#hold.release();
  }

  #neverFits(status: 400 | 413, what: string, bytes: number, code: string): ApiError {
    const how = status === 400 ? ' Ask for fewer answers, tokens or log-probs.' : '';
    return new ApiError(status, this.#neverFitsText(what, bytes) + how, { code });
  }

  #neverFitsText(what: string, bytes: number): string {
    return `This ${what} may take ${Math.ceil(bytes)} bytes of memory, but all requests together have ${this.#limit} (--max-held-memory-bytes).`;
  }
}

const MEMORY_FULL =
  'The requests that are being served hold all the memory there is for them; try again later.';

/**
 * Error for full memory: 429 and not 503, as for a full queue, since the process is well, and has room again when
 * others have had their answers.
 */
export function memoryFull(): ApiError {
  return new ApiError(429, MEMORY_FULL, {
    type: 'rate_limit_error',
    code: 'memory_full',
    headers: { 'retry-after': '1' },
  });
}
