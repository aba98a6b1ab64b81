import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import { type BlockBound, BlockIndex, type WorkerIndex } from './block-index.js';
import { CachedBeginnings } from './cached-beginnings.js';
import { WorkerLoads } from './worker-loads.js';

export interface CacheRouterOptions {
  /** Time that a worker takes to compute the keys and values of one block of a prompt, in any unit. */
  blockTime: number;
  /** Time that a request adds to another one that runs with it, for all of its tokens, in the same unit. */
  requestTime: number;
  /**
   * Weight of a worker's time relative to that of the request, which may wait; default 1. 0: only the
   * request's own first token counts.
   */
  workWeight?: number;
  /** Most blocks that are noted over all workers; default 10 million, some 0.6 GB. */
  maxBlocks?: number;
  /** In place of maxBlocks: the bound, which other routers have too. */
  bound?: BlockBound;
  /** A block that more workers hold says too little about each of them; default 16. */
  fewHolders?: number;
  /**
   * Most workers that are looked at because they have a beginning that many have, and as many because they have little to do; default 256.
   * Where no more are open, or hold it, the choice is the best of all.
   */
  mostLooked?: number;
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

/** The cheapest worker for a request. */
export interface Found extends Routing {
  cost: number;
}

interface Worker {
  name: string;
  index: WorkerIndex;
  /** Requests there that others have sent. */
  others: number;
  /** Ids of those that were sent from here and have not ended. */
  readonly underway: Set<string>;
}

interface Underway {
  worker: Worker;
  hashes: readonly number[];
  /** Blocks that it has yet to compute; 0 from its first token on. */
  pendingBlocks: number;
}

const DEFAULT_MAX_BLOCKS = 10_000_000;
const MAX_LOOKED = 256;

/**
 * Chooses the worker where a request costs least: the time until its first token, and the worker's own time,
 * which all later requests wait for.
 *
 *   cost = (missing blocks of the prompt + blocks that the worker computes for others first) x blockTime + requests there x requestTime
 *        + missing blocks x blockTime x workWeight
 *
 * Without the second line, of two requests with one long beginning that come together the second would be as soon done where it computes
 * all of it once more. What was sent to a worker counts as cached there at once, so that requests with one beginning that come together go together; with the
 * first token the worker's own events take over.
 *
 * A beginning that thousands have costs no more to look up than one that hundreds have: where more hold it
 * than are open, or than `mostLooked`, the open workers are looked at in the order of their loads until none
 * of the rest can cost less with all of it, or `mostLooked` were. After these, a worker that has it and was
 * not looked at counts as one that has not. A pure state machine: it has no clock, no tokens and no
 * connection.
 */
export class CacheRouter {
  readonly #options: CacheRouterOptions;
  readonly #index: BlockIndex;
  /** Blocks that requests under way will leave, for each worker. */
  readonly #expected = new BlockIndex(Number.POSITIVE_INFINITY);
  readonly #beginnings: CachedBeginnings;
  readonly #mostLooked: number;
  readonly #workers = new Map<string, Worker>();
  readonly #byIndex: (Worker | undefined)[] = [];
  readonly #freeIndices: WorkerIndex[] = [];
  /** Requests that were sent somewhere and have not ended, and blocks of prompts that are yet to be computed for them. */
  readonly #loads = new WorkerLoads();
  readonly #underway = new Map<string, Underway>();
  /** Where the search among equals begins, so that they take turns. */
  #turn = 0;

  constructor(options: CacheRouterOptions) {
    this.#options = options;
    this.#index = new BlockIndex(options.bound ?? options.maxBlocks ?? DEFAULT_MAX_BLOCKS);
    this.#mostLooked = options.mostLooked ?? MAX_LOOKED;
    this.#beginnings = new CachedBeginnings(this.#index, this.#expected, options.fewHolders);
  }

  /** Names of the workers. */
  get workers(): string[] {
    return [...this.#workers.keys()];
  }

  /** Number of workers. */
  get size(): number {
    return this.#workers.size;
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
    const worker = { name, index, others: 0, underway: new Set<string>() };
    this.#workers.set(name, worker);
    this.#byIndex[index] = worker;
    this.#loads.add(index);
  }

  /** Removes a worker, and returns the ids of requests that were there: they have ended, and may be sent elsewhere. */
  remove(name: string): string[] {
    const worker = this.#workers.get(name);
    if (worker === undefined) return [];
    const lost = [...worker.underway];
    for (const id of lost) this.end(id);
    this.#index.clear(worker.index);
    this.#workers.delete(name);
    this.#byIndex[worker.index] = undefined;
    this.#loads.remove(worker.index);
    this.#freeIndices.push(worker.index);
    return lost;
  }

  /** Notes what a worker's cache reports (onKvCacheEvents). */
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
   * The blocks of a worker's cache, for callers that know them otherwise than by its events. Of no use once
   * the worker is removed.
   */
  blocksOf(name: string): {
    clear(): void;
    /** @param hasState whether the states after it are kept; null: the model has none */
    add(hash: number, hasState?: boolean | null): void;
    remove(hash: number): void;
  } {
    const { index } = this.#workers.get(name)!;
    return {
      clear: () => this.#index.clear(index),
      add: (hash, hasState = null) => {
        this.#index.add(index, hash);
        if (hasState !== null) this.#index.noteState(index, hash, hasState);
      },
      remove: (hash) => this.#index.remove(index, hash),
    };
  }

  /** A worker may be chosen, as it may when it comes, or not for now: it has no room. */
  setOpen(name: string, isOpen: boolean): void {
    const worker = this.#workers.get(name);
    if (worker !== undefined) this.#loads.setOpen(worker.index, isOpen);
  }

  /** Number of requests that were sent to a worker and have not ended. */
  requestsAt(name: string): number {
    const worker = this.#workers.get(name);
    return worker === undefined ? 0 : this.#loads.requestsAt(worker.index) - worker.others;
  }

  /** Notes how many requests a worker has of which this router knows nothing. */
  noteOthers(name: string, requests: number): void {
    const worker = this.#workers.get(name);
    if (worker === undefined || worker.others === requests) return;
    this.#loads.change(worker.index, { requests: requests - worker.others, pendingBlocks: 0 });
    worker.others = requests;
  }

  /**
   * Sends a request to the cheapest worker. null: there is none that may have it.
   * @param mayHave default: all open workers may @throws Error for an id that is under way
   */
  route(request: RoutedRequest, mayHave?: (worker: string) => boolean): Routing | null {
    this.#checkIsNew(request.id);
    const found = this.find(request.hashes, mayHave);
    if (found === null) return null;
    this.begin(request, found);
    return { worker: found.worker, cachedBlocks: found.cachedBlocks };
  }

  /** The cheapest worker for a request with these blocks; null: there is none that may have it. @param mayHave see route */
  find(hashes: readonly number[], mayHave?: (worker: string) => boolean): Found | null {
    const found = this.#cheapest(hashes, mayHave);
    if (found === null) return null;
    const { worker, cachedBlocks, cost } = found;
    return { worker: worker.name, cachedBlocks, cost };
  }

  /** Notes that a request goes to the worker that was found for it. @throws Error for an id that is under way */
  begin({ id, hashes }: RoutedRequest, { worker, cachedBlocks }: Routing): void {
    this.#checkIsNew(id);
    this.#begin(id, hashes, this.#workers.get(worker)!, cachedBlocks);
  }

  #checkIsNew(id: string): void {
    if (this.#underway.has(id)) throw new Error(`The request ${id} is under way already.`);
  }

  /** Most leading blocks of a prompt that an open worker has, or will have computed for others, among those that are looked at. */
  mostCached(hashes: readonly number[]): number {
    if (this.#loads.numOpen === 0) return 0;
    const beginnings = this.#beginnings;
    this.#look(hashes);
    let most = 0;
    for (const index of beginnings.holders) {
      if (beginnings.mostAt(index) <= most) break;
      if (this.#loads.isOpen(index)) most = Math.max(most, beginnings.lengthAt(index));
    }
    this.#loads.leastFirst(this.#turn, {
      costOf: () => 0,
      mayStop: () => beginnings.mostOfRest <= most,
      visit: (index) => {
        most = Math.max(most, beginnings.lengthAt(index));
      },
      most: this.#mostLooked,
    });
    return most;
  }

  #look(hashes: readonly number[]): void {
    this.#beginnings.look(hashes, Math.min(this.#mostLooked, this.#loads.numOpen));
  }

  /** Notes that a request went to a worker that was not chosen here. @throws Error for an id that is under way */
  assign({ id, hashes }: RoutedRequest, name: string): void {
    this.#checkIsNew(id);
    const worker = this.#workers.get(name);
    if (worker === undefined) return;
    this.#begin(id, hashes, worker, this.#beginnings.lengthOf(worker.index, hashes));
  }

  #begin(id: string, hashes: readonly number[], worker: Worker, cachedBlocks: number): void {
    const pendingBlocks = hashes.length - cachedBlocks;
    this.#loads.change(worker.index, { requests: 1, pendingBlocks });
    this.#underway.set(id, { worker, hashes, pendingBlocks });
    worker.underway.add(id);
    for (const hash of hashes) this.#expected.addAgain(worker.index, hash);
  }

  /** Notes that a request has its first token: its prompt is computed. */
  firstToken(id: string): void {
    const one = this.#underway.get(id);
    if (one === undefined) return;
    const { index } = one.worker;
    if (one.pendingBlocks > 0) this.#loads.change(index, { requests: 0, pendingBlocks: -one.pendingBlocks });
    one.pendingBlocks = 0;
    for (const hash of one.hashes) this.#expected.removeOnce(index, hash);
    one.hashes = [];
  }

  /** Notes that a request has ended, however. */
  end(id: string): void {
    const one = this.#underway.get(id);
    if (one === undefined) return;
    this.firstToken(id);
    this.#loads.change(one.worker.index, { requests: -1, pendingBlocks: 0 });
    this.#underway.delete(id);
    one.worker.underway.delete(id);
  }

  /** Of open workers that cost the same the one whose turn is first. */
  #cheapest(
    hashes: readonly number[],
    mayHave: ((worker: string) => boolean) | undefined,
  ): { worker: Worker; cachedBlocks: number; cost: number } | null {
    const { blockTime, requestTime, workWeight = 1 } = this.#options;
    const loads = this.#loads;
    if (loads.numOpen === 0) return null;
    const beginnings = this.#beginnings;
    const count = this.#byIndex.length;
    const turn = count === 0 ? 0 : (this.#turn + 1) % count;
    this.#turn = turn;
    let best: { worker: Worker; cachedBlocks: number; cost: number } | null = null;
    let least = Number.POSITIVE_INFINITY;
    let placeOfBest = count;
    const costOf = (cachedBlocks: number, requests: number, pendingBlocks: number) => {
      const blocks = (hashes.length - cachedBlocks) * (1 + workWeight) + pendingBlocks;
      return blocks * blockTime + requests * requestTime;
    };
    const placeOf = (index: WorkerIndex) => (index < turn ? index - turn + count : index - turn);
    const isNoBetter = (cost: number, index: WorkerIndex) =>
      cost > least || (cost === least && placeOf(index) >= placeOfBest);
    const costAt = (index: WorkerIndex, cachedBlocks: number) =>
      costOf(cachedBlocks, loads.requestsAt(index), loads.pendingBlocksAt(index));
    const tryWorker = (index: WorkerIndex) => {
      if (!loads.isOpen(index)) return;
      // Most are too expensive whatever they have, so it need not be known.
      if (isNoBetter(costAt(index, beginnings.mostAt(index)), index)) return;
      const worker = this.#byIndex[index];
      if (worker === undefined || mayHave?.(worker.name) === false) return;
      const cachedBlocks = beginnings.lengthAt(index);
      const cost = costAt(index, cachedBlocks);
      if (isNoBetter(cost, index)) return;
      least = cost;
      placeOfBest = placeOf(index);
      best = { worker, cachedBlocks, cost };
    };
    this.#look(hashes);
    for (const index of beginnings.holders) tryWorker(index);
    const { mostOfRest } = beginnings;
    if (mostOfRest > 0) {
      const hasSeenAll = loads.leastFirst(turn, {
        costOf: (requests, pendingBlocks) => costOf(mostOfRest, requests, pendingBlocks),
        mayStop: (first, cost) => isNoBetter(cost, first),
        visit: tryWorker,
        most: this.#mostLooked,
      });
      if (hasSeenAll) return best;
    }
    // The others have none of it, or count as if they had not.
    const mayPass = (first: WorkerIndex, requests: number, pendingBlocks: number) =>
      isNoBetter(costOf(0, requests, pendingBlocks), first);
    loads.walk(turn, count, mayPass, tryWorker);
    loads.walk(0, turn, mayPass, tryWorker);
    return best;
  }
}
