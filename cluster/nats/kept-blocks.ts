import { crc32 } from 'node:zlib';
import type { BlocksAnswer, BlocksMessage } from './messages.js';

interface Kept {
  attempt: number;
  bytes: Uint8Array;
  /** Bytes that have not been asked for yet. */
  left: number;
  untilMs: number;
}

/** The answer of who has none of what is asked for. */
export const NO_BLOCKS: BlocksAnswer = { kind: 'blocksPart', bytes: new Uint8Array(0), sum: 0 };

/**
 * Blocks that a prefill worker has computed and copied out of its cache, until another worker has fetched them all, or
 * has not in time. A state machine without clock or I/O.
 *
 *   keep -> answer, answer ... -> gone with the last byte
 *      '-> expire, release ----> gone
 */
export class KeptBlocks {
  readonly #maxBytes: number;
  readonly #forMs: number;
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  /** @param maxBytes of all together @param forMs how long they are kept for at most */
  constructor(maxBytes: number, forMs: number) {
    this.#maxBytes = maxBytes;
    this.#forMs = forMs;
  }

  /** Bytes that there is room for. */
  get room(): number {
    return this.#maxBytes - this.#bytes;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Keeps blocks of a request, in place of those of an earlier attempt. False: there is no room for them. */
  keep(id: string, attempt: number, bytes: Uint8Array, nowMs: number): boolean {
    this.release(id);
    if (bytes.length > this.room) return false;
    this.#kept.set(id, { attempt, bytes, left: bytes.length, untilMs: nowMs + this.#forMs });
    this.#bytes += bytes.length;
    return true;
  }

  /** The part that is asked for, of at most `most` bytes. */
  answer({ id, attempt, offset, length }: BlocksMessage, most: number): BlocksAnswer {
    const kept = this.#kept.get(id);
    if (kept === undefined || kept.attempt !== attempt || length > most) return NO_BLOCKS;
    const bytes = kept.bytes.subarray(offset, offset + length);
    kept.left -= bytes.length;
    if (kept.left <= 0) this.release(id);
    return { kind: 'blocksPart', bytes, sum: crc32(bytes) };
  }

  /** The blocks are no longer wanted. */
  release(id: string): void {
    const kept = this.#kept.get(id);
    if (kept === undefined) return;
    this.#bytes -= kept.bytes.length;
    this.#kept.delete(id);
  }

  /** Forgets blocks that were not fetched in time. */
  expire(nowMs: number): void {
    for (const [id, { untilMs }] of this.#kept) if (nowMs >= untilMs) this.release(id);
  }
}
