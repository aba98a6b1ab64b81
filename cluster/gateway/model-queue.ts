import { FairQueue } from '../../host/queue/fair-queue.js';
import { QueuePace } from '../../host/queue/queue-pace.js';
import { type QueueLimits, requireRoom } from '../../host/queue/queue-room.js';
import { ArrivalQueue, type WaitingQueue } from '../../host/queue/waiting-queue.js';
import type { PoolName } from '../nats/names.js';
import type { RosterPool } from '../nats/roster-pool.js';
import type { WorkerRoster } from '../nats/worker-roster.js';
import { AgainList } from './again-list.js';
import type { CacheRoutes } from './cache-routes.js';
import type { QueuedRequest } from './queued-request.js';
import { mayMove } from './unleased.js';

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
  readonly #again = new AgainList();
  /** Number of requests that wait, of each client's key. */
  readonly #ofKeys = new Map<string, number>();
  readonly #pace = new QueuePace();

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
    const waiters = { size: this.size, ofKey: () => this.#ofKeys.get(key) ?? 0 };
    requireRoom(this.#limits, waiters, (size) => this.#pace.waitMs(size, nowMs));
  }

  #count(key: string, change: 1 | -1): void {
    const count = (this.#ofKeys.get(key) ?? 0) + change;
    if (count === 0) this.#ofKeys.delete(key);
    else this.#ofKeys.set(key, count);
  }

  push(request: QueuedRequest): void {
    this.#count(request.key, 1);
    this.#waiting.push(request);
  }

  pushAgain(request: QueuedRequest): void {
    this.#count(request.key, 1);
    this.#again.push(request);
  }

  /** The request has ended, wherever it was. */
  settle(request: QueuedRequest): void {
    this.#again.endTrial(request);
    const isRemoved = this.#waiting.remove(request);
    if (this.#again.delete(request) || isRemoved) this.#count(request.key, -1);
    if (!isRemoved) this.#waiting.settle(request, request.usedTokens);
  }

  /** Takes out the requests that are to be offered now. */
  next(around: Surroundings, nowMs: number): Next[] {
    if (this.size === 0) return [];
    const { roster, allowsDifferentBits, maxLocalPrefillLength } = around;
    const pools = new Pools(roster.poolsOf(this.#key), around);
    const prefillers = new Pools(roster.prefillersOf(this.#key), around);
    const next: Next[] = [];
    const place = (request: QueuedRequest, find: () => Found | null): boolean => {
      const prefiller = prefillerOf(request, prefillers, pools, maxLocalPrefillLength);
      const where = prefiller ?? find();
      if (where === null) return false;
      this.#count(request.key, -1);
      next.push({ request, ...where, isPrefill: prefiller !== null });
      return true;
    };
    this.#again.placeAll(roster.changesOf(this.#key), (request) =>
      place(request, () => pools.forAgain(request, allowsDifferentBits)),
    );
    const before = next.length;
    // The longest request decides where the next one can go: which one it is shows when it is taken.
    while (this.#waiting.size > 0 && pools.hasRoom) {
      const [request] = this.#waiting.take(1);
      if (!place(request!, () => pools.forNew(request!))) this.#again.push(request!);
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

/** The pools of a model's workers, and those that are found for requests one after another. */
class Pools {
  readonly #pools: readonly RosterPool[];
  readonly #offers: ReadonlyMap<string, number>;
  readonly #routes: CacheRoutes | null;
  /** Requests that go into the stream of each pool, and are not counted yet. */
  readonly #given = new Map<RosterPool, number>();

  constructor(pools: readonly RosterPool[], { offers, routes }: Surroundings) {
    this.#pools = pools;
    this.#offers = offers;
    this.#routes = routes;
  }

  /** Requests that may still be offered to a pool. */
  #roomOf(pool: RosterPool): number {
    const offered = this.#offers.get(pool.name.fingerprint) ?? 0;
    return pool.sums.offers - offered - (this.#given.get(pool) ?? 0);
  }

  get hasRoom(): boolean {
    return this.#pools.some((pool) => this.#roomOf(pool) > 0);
  }

  /** Layouts of the blocks that its workers take. */
  get layouts(): Set<string> {
    return new Set(this.#pools.flatMap(({ layouts }) => [...layouts]));
  }

  /** Most tokens of the prompt that are cached where there is room. */
  cachedTokens(request: QueuedRequest): number {
    return this.#routes?.cachedTokens(request, this.#pools) ?? 0;
  }

  /** Pool for a request that was offered before: its own one, or any as long as its client has had nothing. */
  forAgain(request: QueuedRequest, allowsDifferentBits: boolean): Found | null {
    const { pool } = request;
    const isOwn = ({ name, takers }: RosterPool) => name.fingerprint === pool?.fingerprint && takers.size > 0;
    const own = pool === null ? undefined : this.#pools.find(isOwn);
    if (own !== undefined) return this.#take(request, [own]);
    if (!mayMove(request, allowsDifferentBits)) return null;
    return this.#best(request, ({ takers }) => takers.size > 0);
  }

  forNew(request: QueuedRequest): Found | null {
    return this.#best(request, (pool) => this.#roomOf(pool) > 0);
  }

  /** Pool with room for a prompt, whose blocks have one of these layouts. */
  forPrompt(request: QueuedRequest, layouts: ReadonlySet<string>): Found | null {
    const isUseful = (pool: RosterPool) => [...pool.layouts].some((layout) => layouts.has(layout));
    return this.#best(request, (pool) => this.#roomOf(pool) > 0 && isUseful(pool));
  }

  #best(request: QueuedRequest, isRight: (pool: RosterPool) => boolean): Found | null {
    const pools = this.#pools.filter((pool) => isRight(pool) && hasAdapter(pool, request));
    if (pools.length <= 1) return this.#take(request, pools);
    const fitting = pools.filter((pool) => fits(pool, request));
    // A request that fits nowhere is refused by a worker, with the numbers.
    const layout = request.handOver?.layout;
    const takesBlocks = (pool: RosterPool) => layout !== undefined && pool.takesLayout(layout);
    const candidates = fitting.length > 0 ? fitting : pools;
    const withBlocks = candidates.filter(takesBlocks);
    const right = withBlocks.length > 0 ? withBlocks : candidates;
    return this.#take(
      request,
      right.sort((a, b) => this.#roomOf(b) - this.#roomOf(a)),
    );
  }

  /** @param pools those that are as good, the one with the most room first */
  #take(request: QueuedRequest, pools: readonly RosterPool[]): Found | null {
    const [first] = pools;
    if (first === undefined) return null;
    const routed = this.#routes?.choose(request, pools) ?? null;
    if (routed !== null) return { pool: routed.pool.name, worker: routed.worker };
    this.#given.set(first, (this.#given.get(first) ?? 0) + 1);
    return { pool: first.name, worker: null };
  }
}

function hasAdapter({ model }: RosterPool, { request }: QueuedRequest): boolean {
  const { adapterName } = request;
  return adapterName === undefined || model.adapters.some(({ name }) => name === adapterName);
}

function fits({ model }: RosterPool, { request, pieces }: QueuedRequest): boolean {
  const { promptTokens, maxNewTokens, beams } = request;
  const { maxInputLen, maxSeqLen, maxBeamWidth, maxSequences } = model.engine;
  const { length } = promptTokens;
  const isShort = length <= maxInputLen && length + maxNewTokens <= maxSeqLen;
  return isShort && (beams?.width ?? 1) <= maxBeamWidth && pieces.length <= maxSequences;
}
