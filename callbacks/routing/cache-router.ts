import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import { BlockIndex, type WorkerIndex } from './block-index.js';

export interface CacheRouterOptions {
  /** Time that a worker takes to compute the keys and values of one block of a prompt, in any unit. */
  blockTime: number;
  /** Time that a request adds to another one beside it, for all of its tokens, in the same unit. */
  requestTime: number;
  /** Weight of a worker's time beside that of the request, which may wait; default 1. 0: only the request's own first token counts. */
  workWeight?: number;
  /** Most blocks that are noted over all workers; default 10 million, some 1 GB. */
  maxBlocks?: number;
}

/** A request that is to be sent somewhere. */
export interface RoutedRequest {
  /** Unique among those that have not ended. */
  id: string;
  /** Hashes of the prompt's full blocks: see promptHashes. */
  hashes: readonly number[];
}

export interface Routing {
  worker: string;
  /** Leading blocks of the prompt that the worker has, or will have computed for others before. */
  cachedBlocks: number;
}

interface Worker {
  name: string;
  index: WorkerIndex;
  /** Requests that were sent there and have not ended. */
  requests: number;
  /** Blocks of prompts that it has yet to compute for them. */
  pendingBlocks: number;
}

interface Underway {
  worker: Worker;
  hashes: readonly number[];
  /** Blocks that it has yet to compute; 0 from its first token on. */
  pendingBlocks: number;
}

const DEFAULT_MAX_BLOCKS = 10_000_000;

/**
 * Chooses the worker where a request costs least: the time until its first token, and the worker's own time, which all who come behind wait for.
 *
 *   cost = (missing blocks of the prompt + blocks that the worker computes for others first) x blockTime + requests there x requestTime
 *        + missing blocks x blockTime x workWeight
 *
 * Without the second line, of two requests with one long beginning that come together the second would be as soon done where it computes
 * all of it once more. What was sent to a worker counts as cached there at once, so that requests with one beginning that come together go together; with the
 * first token the worker's own events take over. A pure state machine: it has no clock, no tokens and no connection.
 */
export class CacheRouter {
  readonly #options: CacheRouterOptions;
  readonly #index: BlockIndex;
  /** Blocks that requests under way will leave, with the number of those requests, for each worker. */
  readonly #expected: BlockIndex;
  readonly #expectedCounts = new Map<WorkerIndex, Map<number, number>>();
  readonly #workers = new Map<string, Worker>();
  readonly #byIndex: (Worker | undefined)[] = [];
  readonly #freeIndices: WorkerIndex[] = [];
  readonly #underway = new Map<string, Underway>();
  /** Where the search among equals begins, so that they take turns. */
  #turn = 0;

  constructor(options: CacheRouterOptions) {
    const { maxBlocks = DEFAULT_MAX_BLOCKS } = options;
    this.#options = options;
    this.#index = new BlockIndex(maxBlocks);
    this.#expected = new BlockIndex(maxBlocks);
  }

  /** Names of the workers. */
  get workers(): string[] {
    return [...this.#workers.keys()];
  }

  /** Blocks that the caches are known to have, over all workers. */
  get knownBlocks(): number {
    return this.#index.size;
  }

  /** Requests that were sent somewhere and have not ended. */
  get underway(): number {
    return this.#underway.size;
  }

  /** Adds a worker with an empty cache; nothing where it is there already. */
  add(name: string): void {
    if (this.#workers.has(name)) return;
    const index = this.#freeIndices.pop() ?? this.#byIndex.length;
    const worker = { name, index, requests: 0, pendingBlocks: 0 };
    this.#workers.set(name, worker);
    this.#byIndex[index] = worker;
  }

  /** Removes a worker, and returns the ids of requests that were there: they have ended, and may be sent elsewhere. */
  remove(name: string): string[] {
    const worker = this.#workers.get(name);
    if (worker === undefined) return [];
    const lost = [...this.#underway].flatMap(([id, one]) => (one.worker === worker ? [id] : []));
    for (const id of lost) this.end(id);
    this.#index.clear(worker.index);
    this.#workers.delete(name);
    this.#byIndex[worker.index] = undefined;
    this.#freeIndices.push(worker.index);
    return lost;
  }

  /** Notes what a worker's cache tells (onKvCacheEvents). */
  note(name: string, events: readonly KvCacheEvent[]): void {
    const worker = this.#workers.get(name);
    if (worker !== undefined) this.#index.note(worker.index, events);
  }

  /** Forgets what a worker's cache has: events of it were lost. */
  forget(name: string): void {
    const worker = this.#workers.get(name);
    if (worker !== undefined) this.#index.clear(worker.index);
  }

  /**
   * Sends a request to the cheapest worker. null: there is none that may have it.
   * @param mayHave default: all workers may @throws Error for an id that is under way
   */
  route({ id, hashes }: RoutedRequest, mayHave?: (worker: string) => boolean): Routing | null {
    if (this.#underway.has(id)) throw new Error(`The request ${id} is under way already.`);
    const cached = this.#cachedBlocks(hashes);
    const worker = this.#cheapest(hashes.length, cached, mayHave);
    if (worker === null) return null;
    const cachedBlocks = cached.get(worker.index) ?? 0;
    const pendingBlocks = hashes.length - cachedBlocks;
    worker.requests += 1;
    worker.pendingBlocks += pendingBlocks;
    this.#underway.set(id, { worker, hashes, pendingBlocks });
    this.#expect(worker.index, hashes);
    return { worker: worker.name, cachedBlocks };
  }

  /** Notes that a request has its first token: its prompt is computed. */
  firstToken(id: string): void {
    const one = this.#underway.get(id);
    if (one === undefined) return;
    one.worker.pendingBlocks -= one.pendingBlocks;
    one.pendingBlocks = 0;
    this.#unexpect(one.worker.index, one.hashes);
    one.hashes = [];
  }

  /** Notes that a request has ended, however. */
  end(id: string): void {
    const one = this.#underway.get(id);
    if (one === undefined) return;
    this.firstToken(id);
    one.worker.requests -= 1;
    this.#underway.delete(id);
  }

  /** Leading blocks by worker, of those that are there or will be. */
  #cachedBlocks(hashes: readonly number[]): Map<WorkerIndex, number> {
    const cached = this.#index.matches(hashes);
    for (const [worker, length] of this.#expected.matches(hashes)) {
      if (length > (cached.get(worker) ?? 0)) cached.set(worker, length);
    }
    // What is there may go on with what will be, and the other way round.
    for (const [worker, length] of cached) {
      let longer = length;
      while (longer < hashes.length && this.#has(worker, hashes[longer]!)) longer += 1;
      cached.set(worker, longer);
    }
    return cached;
  }

  #has(worker: WorkerIndex, hash: number): boolean {
    return this.#index.holds(worker, hash) || this.#expected.holds(worker, hash);
  }

  #cheapest(
    blocks: number,
    cached: ReadonlyMap<WorkerIndex, number>,
    mayHave: ((worker: string) => boolean) | undefined,
  ): Worker | null {
    const { blockTime, requestTime, workWeight = 1 } = this.#options;
    let best: Worker | null = null;
    let least = Number.POSITIVE_INFINITY;
    const count = this.#byIndex.length;
    this.#turn = count === 0 ? 0 : (this.#turn + 1) % count;
    for (let place = 0; place < count; place += 1) {
      const worker = this.#byIndex[(this.#turn + place) % count];
      if (worker === undefined || mayHave?.(worker.name) === false) continue;
      const missing = blocks - (cached.get(worker.index) ?? 0);
      const cost =
        (missing * (1 + workWeight) + worker.pendingBlocks) * blockTime + worker.requests * requestTime;
      if (cost >= least) continue;
      least = cost;
      best = worker;
    }
    return best;
  }

  #expect(worker: WorkerIndex, hashes: readonly number[]): void {
    const counts = this.#expectedCounts.get(worker) ?? new Map<number, number>();
    this.#expectedCounts.set(worker, counts);
    for (const hash of hashes) {
      counts.set(hash, (counts.get(hash) ?? 0) + 1);
      this.#expected.add(worker, hash);
    }
  }

  #unexpect(worker: WorkerIndex, hashes: readonly number[]): void {
    const counts = this.#expectedCounts.get(worker);
    for (const hash of hashes) {
      const left = (counts?.get(hash) ?? 1) - 1;
      if (left > 0) {
        counts?.set(hash, left);
        continue;
      }
      counts?.delete(hash);
      this.#expected.remove(worker, hash);
    }
    if (counts?.size === 0) this.#expectedCounts.delete(worker);
  }
}
