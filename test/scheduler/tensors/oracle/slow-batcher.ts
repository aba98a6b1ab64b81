import type { BatcherConfig } from '../../../../scheduler/tensors/dynamic-batcher.js';
import type { QueuePolicy } from '../../../../scheduler/tensors/queue-policy.js';
import type { NamedRequest } from '../../../support/queued-requests.js';

interface Waiting {
  request: NamedRequest;
  level: number;
  since: number;
  /** Number of those that came before it. */
  number: number;
  deadline: number;
  isDelayed: boolean;
  /** Number of those that were delayed before it. */
  delayedNumber: number;
}

/**
 * The rules of the dynamic batcher once more, without a thought for cost: one list, sorted again for each
 * question, all prefixes of it looked at. It shares nothing with the batcher but the types.
 */
export class SlowBatcher {
  waiting: Waiting[] = [];
  readonly #config: BatcherConfig;
  #rejected: NamedRequest[] = [];
  #now = Number.NEGATIVE_INFINITY;
  #count = 0;
  #numDelayed = 0;
  #numInFront = 0;
  readonly #taken = new Map<NamedRequest, Waiting>();

  constructor(config: BatcherConfig) {
    this.#config = config;
  }

  add(request: NamedRequest, now: number): boolean {
    this.#advance(now);
    const level = this.#level(request.priority);
    const policy = this.#policy(level);
    const { length } = this.waiting.filter((one) => one.level === level);
    if (policy.maxQueueSize > 0 && length >= policy.maxQueueSize) return false;
    const limits = [policy.timeoutUs, policy.allowTimeoutOverride ? request.timeoutUs : 0];
    const shortest = Math.min(...limits.filter((limit) => limit > 0));
    this.waiting.push({
      request,
      level,
      since: this.#now,
      number: this.#count++,
      deadline: this.#now + shortest,
      isDelayed: false,
      delayedNumber: 0,
    });
    return true;
  }

  /** A batch waits again, in front of all others. @returns since when each of its requests has waited */
  putBack(batch: readonly NamedRequest[]): number[] {
    const back = batch.map((request) => this.#taken.get(request)!);
    for (const one of back.toReversed())
      this.waiting.push({ ...one, number: --this.#numInFront, isDelayed: false });
    return back.map(({ since }) => since);
  }

  remove(request: NamedRequest): boolean {
    const { length } = this.waiting;
    this.waiting = this.waiting.filter((one) => one.request !== request);
    return this.waiting.length < length;
  }

  /** What is rejected by now; each is reported once. */
  expire(now: number): NamedRequest[] {
    this.#advance(now);
    return this.#rejected.splice(0);
  }

  /** The batch that goes now; null: none. It is taken out. */
  take(now: number, isDraining = false): NamedRequest[] | null {
    this.#advance(now);
    const length = this.#decide(isDraining);
    if (length === 0) return null;
    const batch = this.order().slice(0, length);
    this.waiting = this.waiting.filter((one) => !batch.includes(one));
    for (const one of batch) this.#taken.set(one.request, one);
    return batch.map(({ request }) => request);
  }

  /**
   * The first time at which a request expires, or, while an instance is free, has waited for the longest
   * delay.
   */
  wake(isFree: boolean): number | null {
    const times = this.waiting.filter(({ isDelayed }) => !isDelayed).map(({ deadline }) => deadline);
    if (isFree) times.push(...this.waiting.map(({ since }) => since + this.#config.maxDelayUs));
    const first = Math.min(...times);
    return first === Infinity ? null : first;
  }

  /** Those that wait, in the order in which they may run. */
  order(): Waiting[] {
    return [...this.waiting].sort(
      (one, other) =>
        one.level - other.level ||
        Number(one.isDelayed) - Number(other.isDelayed) ||
        (one.isDelayed ? one.delayedNumber - other.delayedNumber : 0) ||
        one.number - other.number,
    );
  }

  /** How many of the order go now. */
  #decide(isDraining: boolean): number {
    const { maxBatchSize, oneByOne, maxDelayUs } = this.#config;
    const preferred = this.#config.preferred.length > 0 ? this.#config.preferred : [maxBatchSize];
    const order = this.order();
    if (order.length === 0 || oneByOne) return Math.min(order.length, 1);
    const rows = (count: number) =>
      order.slice(0, count).reduce((sum, { request }) => sum + Math.max(1, request.rows), 0);
    const fits = (count: number) =>
      count === 1 ||
      (rows(count) <= maxBatchSize &&
        order.slice(0, count).every(({ request }) => request.fit === order[0]!.request.fit));
    const counts = order.map((_, index) => index + 1);
    const most = Math.max(...counts.filter((count) => counts.slice(0, count).every(fits)));
    const isOverdue =
      maxDelayUs > 0 && order.slice(0, most).some(({ since }) => this.#now - since >= maxDelayUs);
    if (isOverdue || isDraining) return most;
    const met = counts.filter((count) => count <= most && preferred.includes(rows(count)));
    if (met.length > 0) return Math.max(...met);
    const beyond = counts.filter(
      (count) => count > 1 && count <= most && rows(count) > Math.max(...preferred),
    );
    if (beyond.length > 0) return Math.min(...beyond) - 1;
    const mayGo = most < order.length || rows(most) >= Math.max(...preferred) || maxDelayUs === 0;
    return mayGo ? most : 0;
  }

  #advance(now: number): void {
    this.#now = Math.max(now, this.#now);
    const expired = this.waiting
      .filter(({ isDelayed, deadline }) => !isDelayed && deadline <= this.#now)
      .sort((one, other) => one.deadline - other.deadline || one.number - other.number);
    for (const one of expired) {
      if (this.#policy(one.level).timeoutAction === 'DELAY') {
        one.isDelayed = true;
        one.delayedNumber = this.#numDelayed++;
      } else {
        this.waiting = this.waiting.filter((other) => other !== one);
        this.#rejected.push(one.request);
      }
    }
  }

  #level(priority: number): number {
    const { levels } = this.#config;
    if (levels.count === 0) return 0;
    return priority < 1 || priority > levels.count ? levels.default : priority;
  }

  #policy(level: number): QueuePolicy {
    return this.#config.levels.policies.get(level) ?? this.#config.levels.defaultPolicy;
  }
}
