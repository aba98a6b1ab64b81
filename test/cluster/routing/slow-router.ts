import type { Routing } from '../../../cluster/routing/cache-router.js';
import type { KvCacheEvent } from '../../../kvcache/cache-events.js';

interface SlowWorker {
  name: string;
  blocks: Set<number>;
  /** Blocks after which states are kept; null: none was reported since the cache began. */
  states: Set<number> | null;
}

interface Sent {
  worker: string;
  hashes: readonly number[];
  missing: number;
  hasFirstToken: boolean;
}

/**
 * The rules of CacheRouter as one would write them down: everything is recounted for each request, over all
 * workers.
 */
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
    this.places[place] = { name, blocks: new Set(), states: null };
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
    const worker = this.#find(name);
    for (const { data } of worker === undefined ? [] : events) {
      const { blocks, states } = worker!;
      if (data.type === 'created') this.forget(name);
      if (data.type === 'stored') for (const block of data.blocks) blocks.add(block.blockHash);
      for (const hash of data.type === 'removed' ? data.blockHashes : []) {
        blocks.delete(hash);
        states?.delete(hash);
      }
      if (data.type !== 'updated' || !('hasState' in data)) continue;
      worker!.states ??= new Set();
      if (!data.hasState.newValue) worker!.states.delete(data.blockHash);
      else if (blocks.has(data.blockHash)) worker!.states.add(data.blockHash);
    }
  }

  forget(name: string): void {
    const worker = this.#find(name);
    worker?.blocks.clear();
    if (worker !== undefined) worker.states = null;
  }

  cachedAt(name: string, hashes: readonly number[]): number {
    const { blocks, states } = this.#find(name)!;
    const coming = this.#of(name).flatMap((one) => (one.hasFirstToken ? [] : one.hashes));
    const there = new Set([...blocks, ...coming]);
    const first = hashes.findIndex((hash) => !there.has(hash));
    const leading = first < 0 ? hashes : hashes.slice(0, first);
    if (states === null) return leading.length;
    return leading.findLastIndex((hash) => states.has(hash) || coming.includes(hash)) + 1;
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
