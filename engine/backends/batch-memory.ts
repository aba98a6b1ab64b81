const SMALLEST = 4096;
/** Larger ones are not kept: one large batch is no reason to hold its memory for ever. */
const LARGEST_KEPT = 64 * 2 ** 20;
/**
 * A buffer is not used for a batch that needs less than this share of it: each time it changes its thread, the garbage collectors of both count
 * all of it, so that small batches in large buffers would have them run all the time.
 */
const LEAST_SHARE = 1 / 8;

/**
 * Buffers for batches that are under way, used again and again. A thread is lent one with its batch and sends it back with the
 * answers; a process gets a copy. There are never more of them kept than batches may be under way; those that came back first go first.
 *
 *   free [ 4 MiB | 8 KiB ]  --take(5000)-->  8 KiB  --batch--> instance --done--> give  --> free [ 4 MiB | 8 KiB ]
 */
export class BatchMemory {
  readonly #maxKept: number;
  /** In the order in which they came back. */
  readonly #free: ArrayBuffer[] = [];

  /** @param maxKept batches that may be under way */
  constructor(maxKept: number) {
    this.#maxKept = maxKept;
  }

  /** Bytes that wait to be used again. */
  get keptBytes(): number {
    return this.#free.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** A buffer of at least so many bytes; what is in it is of earlier batches. */
  take(bytes: number): ArrayBuffer {
    const needed = Math.max(SMALLEST, bytes);
    const index = this.#free.findIndex(
      ({ byteLength }) => byteLength >= needed && needed >= LEAST_SHARE * byteLength,
    );
    if (index >= 0) return this.#free.splice(index, 1)[0]!;
    return new ArrayBuffer(needed > LARGEST_KEPT ? needed : 2 ** Math.ceil(Math.log2(needed)));
  }

  /** Takes a buffer back. */
  give(buffer: ArrayBuffer): void {
    if (buffer.byteLength < SMALLEST || buffer.byteLength > LARGEST_KEPT) return;
    this.#free.push(buffer);
    if (this.#free.length > this.#maxKept) this.#free.shift();
  }
}
