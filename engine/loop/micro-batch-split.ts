import { DEFAULT_MIN_MICRO_BATCH_SIZE } from '../../callbacks/options/optional-params.js';
import type { RunningSteps } from './iteration.js';

/**
 * Where micro-batches take turns: divides the requests that can run into `parts` of them. Requests in flight are in the others.
 *
 *   minimum 4, 2 parts    in flight   with capacity
 *   nothing runs              -             7         7: two halves would be too small, all run together
 *                             -            12         6: half of them ...
 *   the other half            6             6         6: ... and the rest
 *   one more came             6             7         7: half of all
 *   most have ended           6             3         wait: 3 are too few; then the 9 run together
 *
 *   minimum 1, 3 parts        -             4         2, then 1 and 1
 *                            1+1            5         3: a third of all
 *
 * A request that waits runs in the very next micro-batch, if it still has capacity: after a wait nothing is divided. So
 * no request starves, and with one or few requests the loop works as without turns.
 */
export class MicroBatchSplit {
  /** Most micro-batches that take turns. */
  readonly parts: number;
  readonly #minimum: number;
  readonly #running: Pick<RunningSteps, 'count'>;
  #hasWaited = false;
  #runsTogether = false;

  /** @param running returns how many of the parts are in flight */
  constructor(
    minimum = DEFAULT_MIN_MICRO_BATCH_SIZE,
    parts = 2,
    running: Pick<RunningSteps, 'count'> = { count: 1 },
  ) {
    this.#minimum = minimum;
    this.parts = parts;
    this.#running = running;
  }

  /** True if the next micro-batch is the only one: no other will run at the same time. */
  get runsTogether(): boolean {
    return this.#runsTogether;
  }

  /** Most requests of the next micro-batch; 0: none until one of those in flight has ended. */
  mostRequests(withCapacity: number, inFlight: number): number {
    const hasWaited = this.#hasWaited;
    this.#hasWaited = false;
    const total = withCapacity + inFlight;
    const partsLeft = inFlight === 0 ? this.parts : Math.max(1, this.parts - this.#running.count);
    const even = Math.min(Math.ceil(total / this.parts), Math.ceil(withCapacity / partsLeft));
    const part = Math.max(this.#minimum, even);
    if (inFlight === 0) {
      this.#runsTogether = hasWaited || total < 2 * this.#minimum;
      return this.#runsTogether ? Number.POSITIVE_INFINITY : part;
    }
    this.#runsTogether = false;
    if (withCapacity >= this.#minimum) return hasWaited ? withCapacity : part;
    this.#hasWaited = hasWaited || withCapacity > 0;
    return 0;
  }
}
