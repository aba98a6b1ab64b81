import { type Levelled, LevelQueue } from './level-queue.js';
import type { QueueLevels } from './queue-policy.js';

/** What the batcher reads of a request. */
export interface QueuedRequest extends Levelled {
  /** Rows of a batch that it takes; 0 counts as 1. */
  readonly rows: number;
  /** Only requests with the same text go into one batch: see batch-fit.ts. */
  readonly fit: string;
}

/** How batches are formed; batcher-presets.ts makes it from a model's configuration. */
export interface BatcherConfig {
  /** Rows of a batch, at least 1. A request with more, which callers should not add, runs alone. */
  readonly maxBatchSize: number;
  /** Every request is a batch of its own, at once: the model takes no batches, or none are to be formed. */
  readonly oneByOne: boolean;
  /** Rows that a batch should have, each at most maxBatchSize; none: maxBatchSize. */
  readonly preferred: readonly number[];
  /** Microseconds for which a batch that has no preferred size waits for more requests; 0: not at all; Infinity: until it has one. */
  readonly maxDelayUs: number;
  readonly levels: QueueLevels;
}

/** Why a request may not wait: its level's queue holds as many as it may. */
export type Refusal = 'queueFull';

/** What the batcher answers. */
export interface NextBatch<R> {
  /** What a free instance is to run now, in its order; null: nothing yet. */
  readonly batch: R[] | null;
  /** Requests that waited for too long and are to be refused; none of them waits any more. */
  readonly rejected: R[];
  /** Time of the next change if no request arrives or leaves; null: never. */
  readonly wakeAtUs: number | null;
}

/** The moment at which the batcher is asked. */
export interface Moment {
  /** An instance is free; false: none is, nothing can go, and it is only asked who has expired. Default true. */
  hasRoom?: boolean;
  /** Nothing will come any more, so nothing is worth waiting for. Default false. */
  isDraining?: boolean;
}

/**
 * Groups requests into batches, as Triton's dynamic batcher does. It has no clock and no timer: each call is
 * given the time in microseconds, of any clock that does not run backwards, and answers when it wants to be
 * called again.
 *
 *   add ---> [ level 1: A B | delayed ]   walk: highest level first, oldest first, rows summed
 *   remove   [ level 2: C   | delayed ]
 *               |        |                            A  B  C  D      preferred 4, 8; at most 10 rows
 *   next <------+        +---> rejected       rows    2  1  1  5
 *   {batch, rejected, wakeAtUs}               sum     2  3  4  9      A B C go: 4 is preferred, 9 is not
 *
 * The walk ends in front of a request that has another `fit`, or with which the sum would pass maxBatchSize. What runs is
 *
 *   1. if no request in it has waited for maxDelayUs: as much of it as makes the largest preferred size;
 *      if none is met and a request would take the sum beyond the largest one, what stands before that request;
 *   2. else the whole walk, if something ended it, or its sum has reached the largest preferred size,
 *      or one in it has waited for maxDelayUs, or maxDelayUs is 0;
 *   3. else nothing, until the oldest has waited for maxDelayUs.
 *
 * While instances are free, `next` is called until it has no batch; while none is, it says who has expired. It has to be called after
 * `add` and `remove`, since a request may change when to wake.
 *
 * A walk takes as many steps as its batch has requests, and maxBatchSize at most. One that finds nothing is not repeated with each
 * request that comes: it notes how many rows there have to be before another can find more (`#idle`).
 * Source of the rules: github.com/triton-inference-server/core, src/dynamic_batch_scheduler.cc and scheduler_utils.cc.
 */
export class DynamicBatcher<R extends QueuedRequest> {
  readonly #maxBatchSize: number;
  readonly #oneByOne: boolean;
  readonly #maxDelayUs: number;
  readonly #isPreferred: ReadonlySet<number>;
  /** Ascending, at least one. */
  readonly #preferred: readonly number[];
  readonly #queue: LevelQueue<R>;
  /** Expired and not handed out yet. */
  #rejected: R[] = [];
  /** Rows that wait. */
  #rows = 0;
  #nowUs = Number.NEGATIVE_INFINITY;
  /**
   * While it stands, all that wait fit each other, and nothing but time or at least `below` rows makes a batch of them.
   * null: only a walk can tell.
   */
  #idle: { below: number; fit: string } | null = null;

  constructor({ maxBatchSize, oneByOne, preferred, maxDelayUs, levels }: BatcherConfig) {
    this.#maxBatchSize = maxBatchSize;
    this.#oneByOne = oneByOne;
    this.#maxDelayUs = maxDelayUs;
    this.#isPreferred = new Set(preferred.length === 0 ? [maxBatchSize] : preferred);
    this.#preferred = [...this.#isPreferred].sort((one, other) => one - other);
    this.#queue = new LevelQueue(levels);
  }

  /** Requests that wait. */
  get size(): number {
    return this.#queue.size;
  }

  /** Their rows together. */
  get rows(): number {
    return this.#rows;
  }

  /** Lets a request wait. @returns why it may not; null: it does */
  add(request: R, nowUs: number): Refusal | null {
    this.#expire(nowUs);
    if (this.#queue.isFullFor(request)) return 'queueFull';
    const isFirst = this.#queue.size === 0;
    const isLast = this.#queue.add(request, this.#nowUs);
    this.#rows += rowsOf(request);
    if (isFirst) this.#idle = { below: this.#leastRows(), fit: request.fit };
    else if (this.#idle?.fit !== request.fit) this.#idle = null;
    else if (!isLast) this.#idle.below = this.#leastRows();
    return null;
  }

  /**
   * Requests of a batch that has not begun wait again, each the first of its level, in their order, with
   * their old arrival times: the batcher decides again. No queue is too full for them.
   */
  putBack(batch: readonly { readonly request: R; readonly enqueuedUs: number }[]): void {
    for (const { request, enqueuedUs } of batch.toReversed()) {
      this.#queue.putBack(request, enqueuedUs);
      this.#rows += rowsOf(request);
    }
    this.#idle = null;
  }

  /**
   * Its sender has left. @returns false where it does not wait: it runs, has been rejected, or was never
   * there
   */
  remove(request: R): boolean {
    if (this.#queue.remove(request) === null) return false;
    this.#leave(request);
    return true;
  }

  /** The batch that goes now, if one does; its requests wait no longer. After a batch it is called again while an instance is free. */
  next(nowUs: number, { hasRoom = true, isDraining = false }: Moment = {}): NextBatch<R> {
    this.#expire(nowUs);
    const batch = hasRoom && (this.#mayForm() || isDraining) ? this.#form(isDraining) : null;
    for (const request of batch ?? []) {
      this.#queue.remove(request);
      this.#rows -= rowsOf(request);
    }
    if (batch !== null) this.#idle = null;
    const dueUs = hasRoom && batch === null ? this.#overdueUs() : Number.POSITIVE_INFINITY;
    const wakeAtUs = Math.min(this.#queue.nearestDeadlineUs, dueUs);
    return {
      batch,
      rejected: this.#handOut(),
      wakeAtUs: wakeAtUs === Number.POSITIVE_INFINITY ? null : wakeAtUs,
    };
  }

  /** When a batch goes if an instance is free: `nowUs` or earlier where one does now; Infinity: never, unless something comes. */
  goesAtUs(nowUs: number, isDraining = false): number {
    this.#expire(nowUs);
    if ((this.#mayForm() || isDraining) && this.#form(isDraining) !== null) return this.#nowUs;
    return this.#overdueUs();
  }

  #expire(nowUs: number): void {
    // A clock that runs backwards stands still here: ages and order stay what they are.
    this.#nowUs = Math.max(this.#nowUs, nowUs);
    for (;;) {
      const expired = this.#queue.expireOne(this.#nowUs);
      if (expired === null) return;
      const { request } = expired.place;
      if (expired.isRejected) {
        this.#rejected.push(request);
        this.#leave(request);
      } else if (this.#idle !== null) this.#idle.below = this.#leastRows();
    }
  }

  #leave(request: R): void {
    this.#rows -= rowsOf(request);
    // The requests after them have moved up, and their sums with them.
    if (this.#idle !== null) this.#idle.below = this.#leastRows();
  }

  #handOut(): R[] {
    const rejected = this.#rejected;
    if (rejected.length > 0) this.#rejected = [];
    return rejected;
  }

  /** No batch of fewer rows goes before its time. */
  #leastRows(): number {
    return this.#maxDelayUs === 0 || this.#oneByOne ? 0 : this.#preferred[0]!;
  }

  /** Time at which a request will have waited for maxDelayUs. */
  #overdueUs(): number {
    return this.#queue.oldestUs + this.#maxDelayUs;
  }

  /** False where a walk would find nothing. */
  #mayForm(): boolean {
    if (this.#queue.size === 0) return false;
    return this.#idle === null || this.#rows >= this.#idle.below || this.#overdueUs() <= this.#nowUs;
  }

  /** The walk: see the class. */
  #form(isDraining: boolean): R[] | null {
    const largest = this.#preferred.at(-1)!;
    const isAnyOverdue = isDraining || (this.#maxDelayUs > 0 && this.#overdueUs() <= this.#nowUs);
    const walked: R[] = [];
    let rows = 0;
    /** Requests of the batch that goes if no request is overdue; 0: there is none. */
    let best = 0;
    let isOverdue = isDraining;
    let isEnded = false;
    for (const { request, enqueuedUs } of this.#queue) {
      if (walked.length > 0) {
        const sum = rows + rowsOf(request);
        if (sum > largest && best === 0) best = walked.length;
        // Beyond the largest preferred size, a walk only looks for an overdue request.
        if (sum > largest && best > 0 && !isAnyOverdue) break;
        isEnded = sum > this.#maxBatchSize || request.fit !== walked[0]!.fit;
        if (isEnded) break;
      }
      walked.push(request);
      if (this.#oneByOne) return walked;
      rows += rowsOf(request);
      isOverdue ||= isAnyOverdue && enqueuedUs + this.#maxDelayUs <= this.#nowUs;
      if (this.#isPreferred.has(rows)) best = walked.length;
    }
    if (walked.length === 0) return null;
    if (best > 0 && !isOverdue) return walked.slice(0, best);
    if (isEnded || isOverdue || rows >= largest || this.#maxDelayUs === 0) return walked;
    this.#idle = { below: this.#preferred.find((size) => size > rows)!, fit: walked[0]!.fit };
    return null;
  }
}

function rowsOf({ rows }: QueuedRequest): number {
  return Math.max(1, rows);
}
