import { FairQueue } from '../../host/queue/fair-queue.js';
import { QueuePace } from '../../host/queue/queue-pace.js';
import { type QueueLimits, requireRoom } from '../../host/queue/queue-room.js';
import { ArrivalQueue, type WaitingQueue } from '../../host/queue/waiting-queue.js';
import type { PoolName } from '../nats/names.js';
import { offersFor, type RosterWorker, type WorkerRoster } from '../nats/worker-roster.js';
import type { CacheRoutes } from './cache-routes.js';
import type { QueuedRequest } from './queued-request.js';

/** A request whose turn it is, and the workers that it goes to. */
export interface Next {
  request: QueuedRequest;
  pool: PoolName;
  /** The worker of the pool that it is sent to; null: it goes into the stream. */
  worker: string | null;
  /** These workers only compute its prompt. */
  isPrefill: boolean;
}

/** Where requests can go at present. */
export interface Surroundings {
  roster: WorkerRoster;
  /** Number of the gateway's requests that each pool has in the stream, untaken. */
  offers: ReadonlyMap<string, number>;
  allowsDifferentBits: boolean;
  /** null: whoever takes a request has it. */
  routes: CacheRoutes | null;
  /** Most tokens of a prompt that whoever answers computes itself although there are prefill workers. */
  maxLocalPrefillLength: number;
}

/**
 * The requests of one model that wait in the gateway. Those whose attempt was given up go before all others: they were
 * somebody's turn already.
 */
export class ModelQueue {
  readonly #key: string;
  readonly #limits: QueueLimits;
  readonly #waiting: WaitingQueue<QueuedRequest>;
  readonly #again = new Set<QueuedRequest>();
  readonly #pace = new QueuePace();
  /** The suspect that was offered last; see QueuedRequest.isSuspect. */
  #onTrial: QueuedRequest | null = null;

  constructor(key: string, limits: QueueLimits) {
    this.#key = key;
    this.#limits = limits;
    this.#waiting = limits.fairQueueing ? new FairQueue() : new ArrivalQueue();
  }

  get size(): number {
    return this.#waiting.size + this.#again.size;
  }

  /** @throws QueueFullError */
  checkRoom(key: string, nowMs: number): void {
    const waiters = { size: this.size, ofKey: () => this.#sizeOf(key) };
    requireRoom(this.#limits, waiters, (size) => this.#pace.waitMs(size, nowMs));
  }

  #sizeOf(key: string): number {
    let count = this.#waiting.sizeOf(key);
    for (const request of this.#again) if (request.key === key) count++;
    return count;
  }

  push(request: QueuedRequest): void {
    this.#waiting.push(request);
  }

  pushAgain(request: QueuedRequest): void {
    this.#endTrial(request);
    this.#again.add(request);
  }

  /** The request has ended, wherever it was. */
  settle(request: QueuedRequest): void {
    this.#endTrial(request);
    this.#again.delete(request);
    if (!this.#waiting.remove(request)) this.#waiting.settle(request, request.usedTokens);
  }

  #endTrial(request: QueuedRequest): void {
    if (this.#onTrial === request) this.#onTrial = null;
  }

  /** Takes out the requests that are to be offered now. */
  next(
    { roster, offers, allowsDifferentBits, routes, maxLocalPrefillLength }: Surroundings,
    nowMs: number,
  ): Next[] {
    if (this.size === 0) return [];
    const pools = new Pools(roster.ofModel(this.#key), offers, routes);
    const prefillers = new Pools(roster.prefillersOf(this.#key), offers, routes);
    const next: Next[] = [];
    const place = (request: QueuedRequest, found: () => Found | null): boolean => {
      const prefiller = prefillerOf(request, prefillers, pools, maxLocalPrefillLength);
      const where = prefiller ?? found();
      if (where !== null) next.push({ request, ...where, isPrefill: prefiller !== null });
      return where !== null;
    };
    for (const request of [...this.#again]) {
      if (request.isSuspect && this.#onTrial?.isSuspect) continue;
      if (!place(request, () => pools.forAgain(request, allowsDifferentBits))) continue;
      this.#again.delete(request);
      if (request.isSuspect) this.#onTrial = request;
    }
    const before = next.length;
    // The longest request decides where the next one can go: which one it is shows when it is taken.
    while (this.#waiting.size > 0 && pools.hasRoom) {
      const [request] = this.#waiting.take(1);
      if (!place(request!, () => pools.forNew(request!))) this.#again.add(request!);
    }
    this.#pace.note(next.length - before, nowMs);
    return next;
  }
}

/**
 * Workers that can compute the prompt for those that answer; null: whoever answers it does so at once, since it is
 * short, was computed already, is cached there but for little, or they have no room.
 */
function prefillerOf(
  request: QueuedRequest,
  prefillers: Pools,
  pools: Pools,
  maxLocalLength: number,
): Found | null {
  const { length } = request.request.promptTokens;
  // What is cached is looked up last: most requests are short, and most queues have no such workers.
  if (!request.wantsPrefill || length <= maxLocalLength || !prefillers.hasRoom) return null;
  const missing = length - pools.cachedTokens(request);
  return missing > maxLocalLength ? prefillers.forPrompt(request, pools.layouts) : null;
}

/** Where a request can go. */
type Found = Pick<Next, 'pool' | 'worker'>;

interface Pool {
  name: PoolName;
  takers: RosterWorker[];
  /** Requests that may still be offered to it. */
  room: number;
}

/** The pools of a model's workers, with the room that each has. */
class Pools {
  readonly #pools = new Map<string, Pool>();
  readonly #routes: CacheRoutes | null;

  constructor(
    workers: readonly RosterWorker[],
    offers: ReadonlyMap<string, number>,
    routes: CacheRoutes | null,
  ) {
    this.#routes = routes;
    const offersOf = (worker: RosterWorker) => routes?.offersFor(worker) ?? offersFor(worker);
    for (const worker of workers) {
      if (worker.isLeaving) continue;
      const { pool: fingerprint, model } = worker;
      const pool = this.#pools.get(fingerprint) ?? {
        name: { model: model.name, fingerprint },
        takers: [],
        room: -(offers.get(fingerprint) ?? 0),
      };
      pool.takers.push(worker);
      pool.room += offersOf(worker);
      this.#pools.set(fingerprint, pool);
    }
  }

  /** Layouts of the blocks that its workers take. */
  get layouts(): Set<string> {
    const layouts = new Set<string>();
    for (const { takers } of this.#pools.values()) {
      for (const { layout } of takers) if (layout !== null) layouts.add(layout);
    }
    return layouts;
  }

  /** Most tokens of the prompt that are cached where there is room. */
  cachedTokens(request: QueuedRequest): number {
    const takers = [...this.#pools.values()].flatMap((pool) => pool.takers);
    return this.#routes?.cachedTokens(request, takers) ?? 0;
  }

  get hasRoom(): boolean {
    return [...this.#pools.values()].some(({ room }) => room > 0);
  }

  /** Pool for a request that was offered before: its own one, or any as long as nothing was answered. */
  forAgain(request: QueuedRequest, allowsDifferentBits: boolean): Found | null {
    const { pool } = request;
    const own = pool === null ? undefined : this.#pools.get(pool.fingerprint);
    if (own !== undefined) return this.#take(request, [own]);
    if (request.hasBegun && !allowsDifferentBits) return null;
    return this.#best(request, () => true);
  }

  forNew(request: QueuedRequest): Found | null {
    return this.#best(request, ({ room }) => room > 0);
  }

  /** Pool with room for a prompt, whose blocks have one of these layouts. */
  forPrompt(request: QueuedRequest, layouts: ReadonlySet<string>): Found | null {
    return this.#best(request, ({ room, takers }) => room > 0 && layouts.has(takers[0]!.layout ?? ''));
  }

  #best(request: QueuedRequest, isRight: (pool: Pool) => boolean): Found | null {
    const { promptTokens, maxNewTokens, adapterName, beams } = request.request;
    const hasAdapter = ({ takers }: Pool) =>
      adapterName === undefined || takers[0]!.model.adapters.some(({ name }) => name === adapterName);
    const fits = ({ takers }: Pool) => {
      const { maxInputLen, maxSeqLen, maxBeamWidth, maxSequences } = takers[0]!.model.engine;
      const { length } = promptTokens;
      const isShort = length <= maxInputLen && length + maxNewTokens <= maxSeqLen;
      return isShort && (beams?.width ?? 1) <= maxBeamWidth && request.pieces.length <= maxSequences;
    };
    const pools = [...this.#pools.values()].filter((pool) => isRight(pool) && hasAdapter(pool));
    const fitting = pools.filter(fits);
    // A request that fits nowhere is refused by a worker, with the numbers.
    const layout = request.handOver?.layout;
    const takesBlocks = ({ takers }: Pool) => Number(layout !== undefined && takers[0]!.layout === layout);
    const sorted = (fitting.length > 0 ? fitting : pools).sort(
      (a, b) => takesBlocks(b) - takesBlocks(a) || b.room - a.room,
    );
    return this.#take(
      request,
      sorted.filter((pool) => takesBlocks(pool) === takesBlocks(sorted[0]!)),
    );
  }

  /** @param pools those that are as good, the one with the most room first */
  #take(request: QueuedRequest, pools: readonly Pool[]): Found | null {
    const [first] = pools;
    if (first === undefined) return null;
    const takers = pools.flatMap((pool) => pool.takers);
    const worker = this.#routes?.choose(request, takers) ?? null;
    const isThere = ({ id }: RosterWorker) => id === worker;
    const pool = worker === null ? first : pools.find((one) => one.takers.some(isThere))!;
    pool.room--;
    return { pool: pool.name, worker };
  }
}
