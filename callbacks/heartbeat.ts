const BEATS = 0;
const ASLEEP = 1;

/**
 * Two Int32 in shared memory through which the worker shows that it moves, also while it blocks its own thread for
 * seconds in one native call: the host reads them without asking it.
 *
 *   [ beats | asleep ]      a beat at the start of each iteration; asleep is 1 while the worker waits at its doorbell
 */
export class Heartbeat {
  readonly #cells: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#cells = new Int32Array(buffer);
  }

  static createBuffer(): SharedArrayBuffer {
    return new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
  }

  /** Notes that an iteration begins. Called by the worker. */
  beat(): void {
    Atomics.store(this.#cells, ASLEEP, 0);
    Atomics.add(this.#cells, BEATS, 1);
  }

  /** Notes that the worker has nothing to do and is about to sleep. */
  sleep(): void {
    Atomics.store(this.#cells, ASLEEP, 1);
  }

  /** Beats since the start; wraps around. */
  get beats(): number {
    return Atomics.load(this.#cells, BEATS);
  }

  get isAsleep(): boolean {
    return Atomics.load(this.#cells, ASLEEP) === 1;
  }
}
