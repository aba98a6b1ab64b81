/** Bytes of the object that holds what one read from a socket brought. */
const CHUNK_BYTES = 256;

/**
 * Counts what has come of a message that is not whole: the library keeps it, and reports only whole messages.
 * It never counts too little: a fragment's header counts as content until its message is whole.
 *
 *   read      | message | mess   |  age   |
 *   counted   '------------ 4 ---+-- 7    0
 */
export class Arrivals {
  #bytes = 0;
  #chunks = 0;
  #latest = 0;
  #sinceMs: number | null = null;

  /** Something was read, and is about to be parsed. */
  read(bytes: number): void {
    this.#bytes += bytes;
    this.#latest = bytes;
    this.#chunks++;
    this.#sinceMs ??= performance.now();
  }

  /** A frame is whole, with a message or a part of the protocol's own in it. What is left came with the latest read. */
  frame(payloadBytes: number): void {
    const left = this.#bytes - wireBytes(payloadBytes);
    this.#bytes = Math.max(0, Math.min(left, this.#latest));
    this.#chunks = this.#bytes === 0 ? 0 : 1;
    this.#sinceMs = null;
  }

  /** A ping or a pong is whole, which may have come between the parts of a message. */
  control(payloadBytes: number): void {
    this.#bytes = Math.max(0, this.#bytes - wireBytes(payloadBytes));
    if (this.#bytes === 0) this.#chunks = 0;
    this.#sinceMs = null;
  }

  /** Bytes of memory that it takes. */
  get held(): number {
    return this.#bytes + this.#chunks * CHUNK_BYTES;
  }

  /** Milliseconds since the first read after which no frame was whole; 0: there was none. */
  get ageMs(): number {
    return this.#sinceMs === null ? 0 : performance.now() - this.#sinceMs;
  }
}

/** Bytes of a masked frame. Source: RFC 6455, 5.2. */
function wireBytes(payloadBytes: number): number {
  return payloadBytes + (payloadBytes < 126 ? 6 : payloadBytes < 65_536 ? 8 : 14);
}
