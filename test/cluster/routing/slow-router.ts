import type { Routing } from '../../../cluster/routing/cache-router.js';
import type { KvCacheEvent } from '../../../kvcache/cache-events.js';

interface SlowWorker {
  name: string;
  blocks: Set<number>;
}

interface Sent {
  worker: string;
  hashes: readonly number[];
  missing: number;
  hasFirstToken: boolean;
}

/** The rules of CacheRouter as one would write them down: everything is counted anew for each request, over all workers. */
export class SlowRouter {
  /** Places of workers; a place that is free is taken first, the last one freed before others. */
  readonly places: (SlowWorker | null)[] = [];
  readonly #free: number[] = [];
  readonly sent = new Map<string, Sent>();
  #turn = 0;

  constructor(
    readonly blockTime: number,
    readonly requestTime: number,
    readonly workWeight: number,
  ) {}

  add(name: string): void {
    if (this.#find(name)) return;
    const place = this.#free.pop() ?? this.places.length;
    this.places[place] = { name, blocks: new Set() };
  }

  remove(name: string): string[] {
    const place = this.places.findIndex((worker) => worker?.name === name);
    if (place < 0) return [];
    this.places[place] = null;
    this.#free.push(place);
    const lost = [...this.sent].filter(([, { worker }]) => worker === name).map(([id]) => id);
    for (const id of lost) this.sent.delete(id);
    return lost;
  }

  note(name: string, events: readonly KvCacheEvent[]): void {
    const blocks = this.#find(name)?.blocks;
    for (const { data } of blocks === undefined ? [] : events) {
      if (data.type === 'created') blocks!.clear();
      if (data.type === 'stored') for (const block of data.blocks) blocks!.add(block.blockHash);
      if (data.type === 'removed') for (const hash of data.blockHashes) blocks!.delete(hash);
    }
  }

  forget(name: string): void {
    this.#find(name)?.blocks.clear();
  }

  cachedAt(name: string, hashes: readonly number[]): number {
    const there = new Set(this.#find(name)!.blocks);
    for (const one of this.#of(name)) if (!one.hasFirstToken) for (const hash of one.hashes) there.add(hash);
    const first = hashes.findIndex((hash) => !there.has(hash));
    return first < 0 ? hashes.length : first;
  }

  costAt(name: string, hashes: readonly number[]): number {
    const own = hashes.length - this.cachedAt(name, hashes);
    const pending = this.#of(name).reduce((sum, one) => sum + (one.hasFirstToken ? 0 : one.missing), 0);
    const untilFirstToken = (own + pending) * this.blockTime + this.#of(name).length * this.requestTime;
    return untilFirstToken + own * this.blockTime * this.workWeight;
  }

  route(id: string, hashes: readonly number[], mayHave: (name: string) => boolean): Routing | null {
    const count = this.places.length;
    this.#turn = count === 0 ? 0 : (this.#turn + 1) % count;
    const order = [...this.places.slice(this.#turn), ...this.places.slice(0, this.#turn)];
    const names = order.flatMap((worker) => (worker !== null && mayHave(worker.name) ? [worker.name] : []));
    const costs = names.map((name) => this.costAt(name, hashes));
    const worker = names[costs.indexOf(Math.min(...costs))];
    if (worker === undefined) return null;
    const cachedBlocks = this.cachedAt(worker, hashes);
    this.sent.set(id, { worker, hashes, missing: hashes.length - cachedBlocks, hasFirstToken: false });
    return { worker, cachedBlocks };
  }

  #of(name: string): Sent[] {
    return [...this.sent.values()].filter(({ worker }) => worker === name);
  }

  #find(name: string): SlowWorker | undefined {
    return this.places.find((worker) => worker?.name === name) ?? undefined;
  }
}
