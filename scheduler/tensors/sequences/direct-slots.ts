import type { InstanceSlots, Taken } from './instance-slots.js';
import type { Queued } from './sequence-line.js';

/** `direct` of a configuration, and the size of the model's batches. */
export interface DirectOptions {
  /** Rows of a batch, at least 1: the slots of an instance. */
  readonly maxBatchSize: number;
  /** Share of the slots with a request from which a batch does not wait for more; 0: it never waits. */
  readonly minimumUtilization: number;
  /** Microseconds that the oldest request waits for such a share; 0: not at all. */
  readonly maxDelayUs: number;
}

/**
 * The strategy `direct`: a sequence is always the same row of its instance's batches.
 *
 *   slot   first requests            fits     batch, as A is the oldest
 *     0    -                                  READY 0
 *     1    A  (since 3)              16       A
 *     2    B  (since 5)              8        READY 0: another fit
 *     3    C  (since 7)              16       C
 *     4    D  (since 9)              8        READY 0: the batch ends with the highest slot that has a request
 *     5    -
 *
 * Requests of the fit of the oldest go; those of another fit wait for a batch of theirs, so that none waits for ever.
 * Source of the rules: github.com/triton-inference-server/core, src/sequence_batch_scheduler, DirectSequenceBatch; there the lowest slot says
 * which fit goes.
 */
export class DirectSlots<R> implements InstanceSlots<R> {
  readonly #options: DirectOptions;
  /** By slot; the last one is there. */
  readonly #offered: (Queued<R> | undefined)[] = [];
  #count = 0;
  /** The oldest that is offered; null: not known. */
  #oldest: Queued<R> | null = null;

  constructor(options: DirectOptions) {
    this.#options = options;
  }

  offer(queued: Queued<R>): void {
    if (this.#count === 0 || (this.#oldest !== null && isOlder(queued, this.#oldest))) this.#oldest = queued;
    this.#offered[queued.line.slot] = queued;
    this.#count++;
  }

  withdraw(queued: Queued<R>): void {
    this.#offered[queued.line.slot] = undefined;
    this.#count--;
    if (this.#oldest === queued) this.#oldest = null;
    while (this.#offered.length > 0 && this.#offered.at(-1) === undefined) this.#offered.pop();
  }

  get dueUs(): number {
    return this.#count === 0 ? Number.POSITIVE_INFINITY : this.#findOldest().enqueuedUs + this.#delayUs;
  }

  goesAtUs(nowUs: number, isDraining: boolean): number {
    const { maxBatchSize, minimumUtilization } = this.#options;
    if (this.#count === 0) return Number.POSITIVE_INFINITY;
    const isFull = this.#count / maxBatchSize >= minimumUtilization;
    return isFull || isDraining ? nowUs : this.dueUs;
  }

  take(nowUs: number, isDraining: boolean): Taken<R> | null {
    if (nowUs < this.goesAtUs(nowUs, isDraining)) return null;
    const { fit } = this.#findOldest();
    const requests = this.#offered.filter((one): one is Queued<R> => one?.fit === fit);
    const rows = requests.map(({ line }) => line.slot);
    const slots = this.#offered.length;
    for (const queued of requests) this.withdraw(queued);
    return { requests, slots, slotOf: (index) => rows[index]! };
  }

  get #delayUs(): number {
    const { minimumUtilization, maxDelayUs } = this.#options;
    return minimumUtilization === 0 ? 0 : maxDelayUs;
  }

  #findOldest(): Queued<R> {
    let oldest = this.#oldest;
    if (oldest === null) {
      for (const one of this.#offered)
        if (one !== undefined && (oldest === null || isOlder(one, oldest))) oldest = one;
      this.#oldest = oldest;
    }
    return oldest!;
  }
}

/** Of two that came at the same time, the one in the lower slot. */
function isOlder<R>(one: Queued<R>, other: Queued<R>): boolean {
  if (one.enqueuedUs !== other.enqueuedUs) return one.enqueuedUs < other.enqueuedUs;
  return one.line.slot < other.line.slot;
}
