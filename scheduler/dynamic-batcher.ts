import { Deadlines } from './deadlines.js';
import { type Linked, LinkedList } from './linked-list.js';
import { deadlineOf, type QueuePolicy } from './queue-policy.js';

/** A request as the batcher sees it. */
export interface QueuedRequest {
  /** Rows of its tensors: what it adds to the size of a batch. At most maxBatchSize; 1 for a model that takes no batches. */
  readonly rows: number;
  /** Requests of equal `fit` go into one batch: the sizes of their inputs, but for ragged ones. */
  readonly fit: string;
  /** From 1, the highest; 0: the model's default. */
  readonly priority: number;
  /** Microseconds that it may wait; 0: the model's default. */
  readonly timeoutUs: number;
}

/** Source: Triton's ModelDynamicBatching. */
export interface BatcherConfig {
  /** Rows of a batch; 0: one request is a batch. */
  maxBatchSize: number;
  /** Sizes for which a batch goes at once; none: any size does. */
  preferred: readonly number[];
  /** Microseconds that a request waits for others; Infinity: until there is a preferred size. */
  maxDelayUs: number;
  /** One for each priority level, the highest first; at least one. */
  levels: readonly QueuePolicy[];
  /** From 1. */
  defaultLevel: number;
}

/** What the batcher answers. */
export interface NextBatch<R> {
  /** Requests that go now, in the order of the batch; null: none. */
  batch: R[] | null;
  /** Requests whose time in the queue is over. */
  rejected: R[];
  /** When to ask again, though nothing comes meanwhile, where nothing goes now; null: never. */
  wakeAtUs: number | null;
}

interface Waiting<R> extends Linked<Waiting<R>> {
  readonly request: R;
  readonly level: Level<R>;
  readonly enqueuedUs: number;
  /** In the list of requests that are over time and go last. */
  isDelayed: boolean;
}

interface Level<R> {
  readonly policy: QueuePolicy;
  readonly list: LinkedList<Waiting<R>>;
  /** Requests over time, behind those of the list. */
  readonly delayed: LinkedList<Waiting<R>>;
  size: number;
}

/**
 * Puts requests for tensors together to batches: a state machine without a clock. It walks what waits, the highest level first and
 * in each the oldest first, as long as sizes add up:
 *
 *   next one has other sizes of its inputs     -> what is pending goes
 *   sum would pass maxBatchSize                -> what is pending goes
 *   sum would pass the largest preferred size  -> what is pending goes, unless the oldest has waited long enough: then up to maxBatchSize
 *   sum is a preferred size                    -> remembered: it goes if nothing better comes
 *   end: oldest has waited maxDelayUs          -> all that is pending goes
 *        something is remembered               -> that prefix goes
 *        else                                  -> wait, until the oldest has waited long enough
 *
 *   preferred 4, 8; rows waiting: 2 1 1 3       2 3 4 7      the prefix of 4 goes, the 3 waits for its own batch
 *
 * Adding, removing and expiring a request are cheap whatever number waits; forming a batch looks at no more requests than it may hold.
 * Source: Triton's dynamic batcher; soft and hard batchers of the AMD Inference Server and the batched service are
 * configurations of it (batcher-presets.ts).
 */
export class DynamicBatcher<R extends QueuedRequest> {
  readonly #config: BatcherConfig;
  readonly #levels: readonly Level<R>[];
  readonly #maxPreferred: number;
  readonly #preferred: ReadonlySet<number>;
  readonly #waiting = new Map<R, Waiting<R>>();
  readonly #deadlines = new Deadlines<Waiting<R>>();

  constructor(config: BatcherConfig) {
    this.#config = config;
    this.#levels = config.levels.map((policy) => ({
      policy,
      list: new LinkedList(),
      delayed: new LinkedList(),
      size: 0,
    }));
    this.#preferred = new Set(config.preferred);
    this.#maxPreferred = Math.max(0, ...config.preferred);
  }

  /** Requests that wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** A request begins to wait; 'queueFull': its level has as many as it takes, and it does not. */
  add(request: R, nowUs: number): 'queueFull' | null {
    const level = this.#levelOf(request.priority);
    const { maxQueueSize } = level.policy;
    if (maxQueueSize > 0 && level.size >= maxQueueSize) return 'queueFull';
    const waiting: Waiting<R> = {
      request,
      level,
      enqueuedUs: nowUs,
      isDelayed: false,
      previous: null,
      next: null,
    };
    level.list.append(waiting);
    level.size++;
    this.#waiting.set(request, waiting);
    const deadlineUs = deadlineOf(level.policy, request.timeoutUs, nowUs);
    if (deadlineUs !== Number.POSITIVE_INFINITY) this.#deadlines.add(waiting, deadlineUs);
    return null;
  }

  /** Nobody wants its answer any more. False: it does not wait. */
  remove(request: R): boolean {
    const waiting = this.#waiting.get(request);
    if (waiting === undefined) return false;
    this.#take(waiting);
    return true;
  }

  /**
   * The batch that goes now, if one does; its requests wait no longer.
   * @param hasRoom false: none can go, and it is only asked whose time is over
   * @param isDraining nothing will come any more: nothing is worth waiting for
   */
  next(nowUs: number, { hasRoom = true, isDraining = false } = {}): NextBatch<R> {
    const rejected = this.#expire(nowUs);
    const { batch, wakeAtUs } = hasRoom ? this.#form(nowUs, isDraining) : { batch: null, wakeAtUs: null };
    for (const waiting of batch ?? []) this.#take(waiting);
    const dueUs = this.#deadlines.earliest((waiting) => this.#isInTime(waiting));
    return {
      batch: batch === null ? null : batch.map(({ request }) => request),
      rejected,
      wakeAtUs: batch !== null ? null : earlier(wakeAtUs, dueUs),
    };
  }

  #levelOf(priority: number): Level<R> {
    const { defaultLevel } = this.#config;
    const number = priority >= 1 && priority <= this.#levels.length ? priority : defaultLevel;
    return this.#levels[number - 1]!;
  }

  #expire(nowUs: number): R[] {
    const rejected: R[] = [];
    for (let due = this.#deadlines.takeDue(nowUs); due !== null; due = this.#deadlines.takeDue(nowUs)) {
      if (!this.#isInTime(due)) continue;
      if (due.level.policy.timeoutAction === 'reject') {
        this.#take(due);
        rejected.push(due.request);
      } else {
        due.level.list.remove(due);
        due.isDelayed = true;
        due.level.delayed.append(due);
      }
    }
    return rejected;
  }

  /** It waits and its time is not over. */
  #isInTime(waiting: Waiting<R>): boolean {
    return !waiting.isDelayed && this.#waiting.get(waiting.request) === waiting;
  }

  #form(nowUs: number, isDraining: boolean): { batch: Waiting<R>[] | null; wakeAtUs: number | null } {
    const { maxBatchSize, maxDelayUs } = this.#config;
    const pending: Waiting<R>[] = [];
    /** Requests of the prefix that has a preferred size, or that the next one would take beyond the largest. */
    let marked = 0;
    let rows = 0;
    let oldestUs = Number.POSITIVE_INFINITY;
    let isClosed = false;
    for (const waiting of this.#inOrder()) {
      const { request, enqueuedUs } = waiting;
      if (pending.length > 0) {
        const sum = rows + request.rows;
        if (sum > this.#maxPreferred && this.#maxPreferred > 0 && marked === 0) marked = pending.length;
        isClosed = sum > maxBatchSize || request.fit !== pending[0]!.request.fit;
        if (isClosed) break;
      }
      pending.push(waiting);
      rows += request.rows;
      oldestUs = Math.min(oldestUs, enqueuedUs);
      if (this.#preferred.has(rows)) marked = pending.length;
      if (rows >= maxBatchSize) {
        isClosed = true;
        break;
      }
    }
    if (pending.length === 0) return { batch: null, wakeAtUs: null };
    const isLate = nowUs - oldestUs >= maxDelayUs || isDraining;
    if (!isLate && marked > 0) return { batch: pending.slice(0, marked), wakeAtUs: null };
    if (isLate || isClosed || rows >= this.#maxPreferred) return { batch: pending, wakeAtUs: null };
    return { batch: null, wakeAtUs: oldestUs + maxDelayUs };
  }

  *#inOrder(): Generator<Waiting<R>> {
    for (const { list, delayed } of this.#levels) {
      for (let one = list.first; one !== null; one = one.next) yield one;
      for (let one = delayed.first; one !== null; one = one.next) yield one;
    }
  }

  #take(waiting: Waiting<R>): void {
    const { level, isDelayed, request } = waiting;
    (isDelayed ? level.delayed : level.list).remove(waiting);
    level.size--;
    this.#waiting.delete(request);
  }
}

function earlier(a: number | null, b: number | null): number | null {
  if (a === null || a === Number.POSITIVE_INFINITY) return b;
  return b === null ? a : Math.min(a, b);
}
