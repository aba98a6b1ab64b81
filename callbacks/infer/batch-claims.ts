const WAITS = 0;
const HAS_BEGUN = 1;
const IS_RECALLED = 2;

/** Memory that a host and an instance's thread share: a word for each batch that the instance may have. */
export function claimsMemory(numSlots: number): SharedArrayBuffer {
  return new SharedArrayBuffer(numSlots * Int32Array.BYTES_PER_ELEMENT);
}

/**
 * Who has a batch that waits in an instance's port. The instance takes it when it is its turn; until then the host may have it back,
 * however busy the instance's thread is.
 *
 *   offer -> WAITS --claim (the instance)--> HAS_BEGUN
 *                '---recall (the host)-----> IS_RECALLED     the instance finds it so, and drops the batch
 */
export class BatchClaims {
  readonly #words: Int32Array;

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
  }

  /** The host sends a batch with this slot, which nothing has any more. */
  offer(slot: number): void {
    Atomics.store(this.#words, slot, WAITS);
  }

  /** The instance begins with it; false: it is the host's again. */
  claim(slot: number): boolean {
    return Atomics.compareExchange(this.#words, slot, WAITS, HAS_BEGUN) === WAITS;
  }

  /** The host has it back; false: the instance has begun. */
  recall(slot: number): boolean {
    return Atomics.compareExchange(this.#words, slot, WAITS, IS_RECALLED) === WAITS;
  }
}
