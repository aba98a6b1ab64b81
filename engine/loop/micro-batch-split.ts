import { DEFAULT_MIN_MICRO_BATCH_SIZE } from '../../callbacks/options/optional-params.js';

/**
 * With overlap: divides the requests that can run into two micro-batches. Requests in flight are one of them.
 *
 *   minimum 4             in flight   with capacity
 *   nothing runs              -             7         7: two halves would be too small, all run together
 *                             -            12         6: half of them ...
 *   the other half            6             6         6: ... and the rest
 *   one more came             6             7         7: half of all
 *   most have ended           6             3         wait: 3 are too few; then the 9 run together
 *
 * A request that waits runs in the very next micro-batch, if it still has capacity: after a wait nothing is divided. So
 * no request starves, and with one or few requests the loop works as without overlap.
 */
export class MicroBatchSplit {
  readonly #minimum: number;
  #hasWaited = false;
  #runsTogether = false;

  constructor(minimum = DEFAULT_MIN_MICRO_BATCH_SIZE) {
    this.#minimum = minimum;
  }

  /** True if the next micro-batch is the only one: nothing will run beside it. */
  get runsTogether(): boolean {
    return this.#runsTogether;
  }

  /** Most requests of the next micro-batch; 0: none until those in flight have ended. */
  mostRequests(withCapacity: number, inFlight: number): number {
    if (inFlight === 0) {
      this.#runsTogether = this.#hasWaited || withCapacity < 2 * this.#minimum;
      this.#hasWaited = false;
      return this.#runsTogether ? Number.POSITIVE_INFINITY : Math.ceil(withCapacity / 2);
    }
    this.#runsTogether = false;
    if (withCapacity < this.#minimum) {
      this.#hasWaited = withCapacity > 0;
      return 0;
    }
    return Math.max(this.#minimum, Math.ceil((withCapacity + inFlight) / 2));
  }
}
