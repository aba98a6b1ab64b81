import { DynamicBatcher } from '../dynamic-batcher.js';
import { ONE_LEVEL } from '../queue-policy.js';
import type { InstanceSlots, Taken } from './instance-slots.js';
import type { Queued } from './sequence-line.js';

/** `oldest` of a configuration, and the size of the model's batches. */
export interface OldestOptions {
  /** Rows of a batch, at least 1. */
  readonly maxBatchSize: number;
  /** Rows that a batch should have; none: maxBatchSize. */
  readonly preferred: readonly number[];
  /** Microseconds that a batch of no preferred size waits for more requests. */
  readonly maxDelayUs: number;
}

/**
 * The strategy `oldest`: the first requests of an instance's candidate sequences go through a dynamic batcher, the oldest first. A request
 * comes to it when that before it in its sequence is done, so no batch has two of one sequence:
 *
 *   candidates       batches of 2:   1    2    3    4    5    6
 *   A  a1 a2 a3                      a1        a2        a3
 *   B  b1 b2                         b1        b2
 *   C  c1                                 c1
 *   D  d1 d2 d3 d4                        d1        d2   d3   d4      (batch 4 is d2 and a3)
 */
export class OldestCandidates<R> implements InstanceSlots<R> {
  readonly #batcher: DynamicBatcher<Queued<R>>;
  /** When the batcher wants to be asked again. */
  #dueUs = Number.POSITIVE_INFINITY;

  constructor({ maxBatchSize, preferred, maxDelayUs }: OldestOptions) {
    this.#batcher = new DynamicBatcher({
      maxBatchSize,
      oneByOne: false,
      preferred,
      maxDelayUs,
      levels: ONE_LEVEL,
    });
  }

  offer(queued: Queued<R>, nowUs: number): void {
    this.#batcher.add(queued, nowUs);
  }

  withdraw(queued: Queued<R>): void {
    this.#batcher.remove(queued);
  }

  get dueUs(): number {
    return this.#batcher.size === 0 ? Number.POSITIVE_INFINITY : this.#dueUs;
  }

  goesAtUs(nowUs: number, isDraining: boolean): number {
    return this.#batcher.goesAtUs(nowUs, isDraining);
  }

  take(nowUs: number, isDraining: boolean): Taken<R> | null {
    const { batch, wakeAtUs } = this.#batcher.next(nowUs, { isDraining });
    this.#dueUs = wakeAtUs ?? Number.POSITIVE_INFINITY;
    return batch && { requests: batch, slots: batch.length, slotOf: (index) => index };
  }
}
