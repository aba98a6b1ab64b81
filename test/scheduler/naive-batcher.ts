import type { BatcherConfig, NextBatch, QueuedRequest } from '../../scheduler/dynamic-batcher.js';

interface Row<R> {
  request: R;
  level: number;
  came: number;
  over: number;
  isOver: boolean;
}

/** The rules of the dynamic batcher, read one by one over plain lists; slow, and written apart from it. */
export class NaiveBatcher<R extends QueuedRequest> {
  readonly #config: BatcherConfig;
  #rows: Row<R>[] = [];
  /** Requests over time of a level with `delay`, in the order in which their time was over. */
  #over: Row<R>[] = [];

  constructor(config: BatcherConfig) {
    this.#config = config;
  }

  get size(): number {
    return this.#rows.length;
  }

  add(request: R, now: number): 'queueFull' | null {
    const { levels, defaultLevel } = this.#config;
    const level =
      request.priority >= 1 && request.priority <= levels.length ? request.priority : defaultLevel;
    const policy = levels[level - 1]!;
    const inLevel = this.#rows.filter((row) => row.level === level).length;
    if (policy.maxQueueSize !== 0 && inLevel >= policy.maxQueueSize) return 'queueFull';
    const times = [policy.defaultTimeoutUs, policy.allowTimeoutOverride ? request.timeoutUs : 0].filter(
      (t) => t > 0,
    );
    const over = times.length === 0 ? Number.POSITIVE_INFINITY : now + Math.min(...times);
    this.#rows.push({ request, level, came: now, over, isOver: false });
    return null;
  }

  remove(request: R): boolean {
    const before = this.#rows.length;
    this.#drop([request]);
    return this.#rows.length < before;
  }

  next(now: number, { hasRoom = true, isDraining = false } = {}): NextBatch<R> {
    const due = this.#rows.filter((row) => !row.isOver && row.over <= now).sort((a, b) => a.over - b.over);
    const rejected: R[] = [];
    for (const row of due) {
      row.isOver = true;
      if (this.#config.levels[row.level - 1]!.timeoutAction === 'reject') rejected.push(row.request);
      else this.#over.push(row);
    }
    this.#drop(rejected);
    const batch = hasRoom ? this.#batch(now, isDraining) : null;
    if (batch !== null) {
      this.#drop(batch);
      return { batch, rejected, wakeAtUs: null };
    }
    const times = this.#rows
      .filter((row) => !row.isOver && row.over < Number.POSITIVE_INFINITY)
      .map((row) => row.over);
    if (hasRoom && this.#rows.length > 0) times.push(this.#oldest(this.#longest()) + this.#config.maxDelayUs);
    const finite = times.filter((time) => time !== Number.POSITIVE_INFINITY);
    return { batch: null, rejected, wakeAtUs: finite.length === 0 ? null : Math.min(...finite) };
  }

  #batch(now: number, isDraining: boolean): R[] | null {
    const { maxBatchSize, preferred, maxDelayUs } = this.#config;
    const order = this.#order();
    if (order.length === 0) return null;
    const longest = this.#longest();
    if (now - this.#oldest(longest) >= maxDelayUs || isDraining) return longest.map(({ request }) => request);
    const size = (count: number) => order.slice(0, count).reduce((sum, { request }) => sum + request.rows, 0);
    const counts = longest.map((_, i) => i + 1);
    // A preferred size counts up to the end; the place before the largest preferred size is passed counts where none came before it.
    const largest = Math.max(0, ...preferred);
    const exact = counts.filter((count) => preferred.includes(size(count)));
    const passing = counts.find((count) => count < order.length && size(count + 1) > largest);
    const before =
      largest > 0 && passing !== undefined && !exact.some((count) => count <= passing) ? passing : 0;
    const best = Math.max(before, ...exact);
    if (best > 0) return order.slice(0, best).map(({ request }) => request);
    const isFull = size(longest.length) >= maxBatchSize;
    if (longest.length < order.length || isFull || size(longest.length) >= largest) {
      return longest.map(({ request }) => request);
    }
    return null;
  }

  /** What fits into one batch from the front. */
  #longest(): Row<R>[] {
    const order = this.#order();
    const taken: Row<R>[] = [];
    let sum = 0;
    for (const row of order) {
      const isFirst = taken.length === 0;
      if (!isFirst && sum >= this.#config.maxBatchSize) break;
      if (!isFirst && sum + row.request.rows > this.#config.maxBatchSize) break;
      if (!isFirst && row.request.fit !== taken[0]!.request.fit) break;
      taken.push(row);
      sum += row.request.rows;
    }
    return taken;
  }

  #order(): Row<R>[] {
    const levels = this.#config.levels.map((_, i) => i + 1);
    return levels.flatMap((level) => [
      ...this.#rows.filter((row) => row.level === level && !row.isOver),
      ...this.#over.filter((row) => row.level === level),
    ]);
  }

  #oldest(rows: readonly Row<R>[]): number {
    return Math.min(...rows.map(({ came }) => came));
  }

  #drop(requests: readonly R[]): void {
    this.#rows = this.#rows.filter(({ request }) => !requests.includes(request));
    this.#over = this.#over.filter(({ request }) => !requests.includes(request));
  }
}
