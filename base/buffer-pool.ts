const SMALLEST = 4096;
/** Larger ones are not kept: one large use is no reason to hold its memory for ever. */
const LARGEST_KEPT = 64 * 2 ** 20;
/**
 * A buffer is not used for what needs less than this share of it: each time it changes its thread, the garbage collectors of both count
 * all of it, so that few bytes in large buffers would have them run all the time.
 */
const MIN_SHARE = 1 / 8;

export interface BufferPoolLimits {
  /** Buffers that wait to be used again. */
  maxKept: number;
  /** Bytes of them all; default: any number. */
  maxKeptBytes?: number;
}

/**
 * Large buffers that are used again and again: a new one costs the system's pages and the garbage collector's
 * runs, which count memory outside of the heap. Those that came back first go first where too many are kept.
 * A buffer that is not given back is garbage like any other.
 *
 *   free [ 4 MiB | 8 KiB ]  --take(5000)-->  8 KiB  --used--> give  --> free [ 4 MiB | 8 KiB ]
 */
export class BufferPool {
  #limits: Required<BufferPoolLimits>;
  /** In the order in which they came back. */
  readonly #free: ArrayBuffer[] = [];

  constructor({ maxKept, maxKeptBytes = Number.POSITIVE_INFINITY }: BufferPoolLimits) {
    this.#limits = { maxKept, maxKeptBytes };
  }

  /** Bytes that wait to be used again. */
  get keptBytes(): number {
    return this.#free.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** Sets how many free buffers wait at most. */
  keep(maxKept: number): void {
    this.#limits = { ...this.#limits, maxKept };
  }

  /** A buffer of at least `bytes` bytes; what is in it is of earlier uses. */
  take(bytes: number): ArrayBuffer {
    const needed = Math.max(SMALLEST, bytes);
    const index = this.#free.findIndex(
      ({ byteLength }) => byteLength >= needed && needed >= MIN_SHARE * byteLength,
    );
    if (index >= 0) return this.#free.splice(index, 1)[0]!;
    return new ArrayBuffer(needed > LARGEST_KEPT ? needed : 2 ** Math.ceil(Math.log2(needed)));
  }

  /** Takes a buffer back. */
  give(buffer: ArrayBuffer): void {
    if (buffer.byteLength < SMALLEST || buffer.byteLength > LARGEST_KEPT) return;
    this.#free.push(buffer);
    const { maxKept, maxKeptBytes } = this.#limits;
    while (this.#free.length > maxKept || this.keptBytes > maxKeptBytes) this.#free.shift();
  }
}

/**
 * Notifies the garbage collector of unreferenced shared memory. It does not count that memory, and would not
 * run for gigabytes of it: an unshared buffer of the same size counts, and costs nothing until it is written
 * to.
 */
export function noteFreed(bytes: number): void {
  try {
    new ArrayBuffer(bytes);
  } catch {
    // The system gives no more memory, or the engine takes no buffer of this size: the collector is notified
    // later.
  }
}
