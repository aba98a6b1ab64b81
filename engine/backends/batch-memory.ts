const SMALLEST = 4096;
/** Larger ones are not kept: one large batch is no reason to hold its memory for ever. */
const LARGEST_KEPT = 64 * 2 ** 20;

/**
 * Buffers for batches that are under way, used again and again. A thread is lent one with its batch and sends it back with the
 * answers; a process gets a copy. There are never more of them kept than batches may be under way.
 *
 *   free [ 64 KiB | 4 KiB ]  --take(5000)-->  64 KiB  --batch--> instance --done--> give  --> free
 */
export class BatchMemory {
  readonly #maxKept: number;
  #free: ArrayBuffer[] = [];

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
    const index = this.#free.findIndex(({ byteLength }) => byteLength >= bytes);
    if (index >= 0) return this.#free.splice(index, 1)[0]!;
    return new ArrayBuffer(
      Math.max(SMALLEST, bytes > LARGEST_KEPT ? bytes : 2 ** Math.ceil(Math.log2(bytes))),
    );
  }

  /** Takes a buffer back. */
  give(buffer: ArrayBuffer): void {
    if (buffer.byteLength < SMALLEST || buffer.byteLength > LARGEST_KEPT) return;
    // The larger ones can take any batch.
    this.#free.push(buffer);
    this.#free.sort((a, b) => a.byteLength - b.byteLength);
    if (this.#free.length > this.#maxKept) this.#free.shift();
  }
}
