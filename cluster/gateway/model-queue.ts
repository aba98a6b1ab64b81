import { FairQueue } from '../../host/queue/fair-queue.js';
import { QueuePace } from '../../host/queue/queue-pace.js';
import { type QueueLimits, requireRoom } from '../../host/queue/queue-room.js';
import { ArrivalQueue, type WaitingQueue } from '../../host/queue/waiting-queue.js';
import type { PoolName } from '../nats/names.js';
import type { RosterPool } from '../nats/roster-pool.js';
import type { WorkerRoster } from '../nats/worker-roster.js';
import { PoolWeights } from '../routing/pool-weights.js';
import { AgainList } from './again-list.js';
import { Aims, engineOf } from './aims.js';
import type { CacheRoutes } from './cache-routes.js';
import { isNameOfEngine } from './card-fingerprint.js';
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
  /** null: any worker may take a request. */
  routes: CacheRoutes | null;
  /**
   * The longest prompt, in tokens, that the answering worker computes itself although there are prefill
   * workers.
   */
  maxLocalPrefillLength: number;
}

/**
 * The requests of one model that wait in the gateway. Those whose attempt was given up go before all others:
 * they had their turn already.
 */
export class ModelQueue {
  /** Which engines its requests are for. */
  readonly aims: Aims;
  readonly #key: string;
  readonly #limits: QueueLimits;
  /** Requests that have come, or whose engine is to be looked for again. */
  #unaimed = new Set<QueuedRequest>();
  /** The others, by the pools that they may go to. */
  readonly #rows = new Map<string, Row>();
  readonly #rowOf = new Map<QueuedRequest, Row>();
  readonly #again = new AgainList();
  /** Number of requests that wait, of each client's key. */
  readonly #ofKeys = new Map<string, number>();
  readonly #pace = new QueuePace();
  #numWaiting = 0;
  /** Of the pools, and of the weights, by which rows were made. */
  #seen = '';

  constructor(key: string, limits: QueueLimits, weights = new PoolWeights()) {
    this.#key = key;
    this.#limits = limits;
    this.aims = new Aims(weights);
  }

  get size(): number {
    return this.#numWaiting;
  }

  /** @throws QueueFullError */
  checkRoom(key: string, nowMs: number): void {
    const waiters = { size: this.size, ofKey: () => this.#ofKeys.get(key) ?? 0 };
    requireRoom(this.#limits, waiters, (size) => this.#pace.waitMs(size, nowMs));
  }

  #count(key: string, change: 1 | -1): void {
    const count = (this.#ofKeys.get(key) ?? 0) + change;
    this.#numWaiting += change;
    if (count === 0) this.#ofKeys.delete(key);
    else this.#ofKeys.set(key, count);
  }

  push(request: QueuedRequest): void {
    this.#count(request.key, 1);
    this.#unaimed.add(request);
  }

  pushAgain(request: QueuedRequest): void {
    this.#count(request.key, 1);
    this.#again.push(request);
  }

  /** The request has ended, wherever it was. */
  settle(request: QueuedRequest): void {
    this.#again.endTrial(request);
    const row = this.#rowOf.get(request);
    this.#rowOf.delete(request);
    const isInRow = row?.waiting.remove(request) ?? false;
    if (this.#unaimed.delete(request) || this.#again.delete(request) || isInRow) this.#count(request.key, -1);
    if (isInRow) this.#dropEmpty(row!);
    else row?.waiting.settle(request, request.usedTokens);
  }

  /** Takes out the requests that are to be offered now. */
  next(around: Surroundings, nowMs: number): Next[] {
    if (this.size === 0) return [];
    const { roster, maxLocalPrefillLength } = around;
    const all = roster.poolsOf(this.#key);
    const given = new Map<RosterPool, number>();
    const prefillers = new Pools(roster.prefillersOf(this.#key), around, given);
    const next: Next[] = [];
    const place = (request: QueuedRequest, pools: Pools, find: () => Found | null): boolean => {
      const prefiller = prefillerOf(request, prefillers, pools, maxLocalPrefillLength);
      const where = prefiller ?? find();
      if (where === null) return false;
      this.#count(request.key, -1);
      if (prefiller === null && !request.isCounted) this.aims.note(roster.pool(where.pool.fingerprint)!);
      request.isCounted ||= prefiller === null;
      next.push({ request, ...where, isPrefill: prefiller !== null });
      return true;
    };
    this.#again.placeAll(this.#aimAll(around, all), (request) => {
      const pools = new Pools(this.#poolsAgain(request, around, all), around, given);
      return place(request, pools, () => pools.forAgain(request));
    });
    const before = next.length;
    for (const row of [...this.#rows.values()]) {
      const pools = new Pools(row.among(all), around, given);
      // The longest request decides where the next one can go: which one it is shows when it is taken.
      while (row.waiting.size > 0 && pools.hasRoom) {
        const [request] = row.waiting.take(1);
        if (!place(request!, pools, () => pools.forNew(request!))) this.#again.push(request!);
      }
      this.#dropEmpty(row);
    }
    this.#pace.note(next.length - before, nowMs);
    return next;
  }

  /** Its own pool, from which a request does not go as long as it is there; else those that may begin it. */
  #poolsAgain(
    request: QueuedRequest,
    { allowsDifferentBits }: Surroundings,
    all: readonly RosterPool[],
  ): readonly RosterPool[] {
    const own = all.filter(
      ({ name, takers }) => name.fingerprint === request.pool?.fingerprint && takers.size > 0,
    );
    if (own.length > 0 || !mayMove(request, allowsDifferentBits)) return own;
    const allowed = this.aims.allowed(request, all);
    if (request.pin !== null || !this.aims.isWeighted(all)) return allowed;
    const engine = this.aims.next(ableOf(request, allowed));
    return allowed.filter((pool) => engineOf(pool) === engine);
  }

  /** Brings requests into their rows. @returns another number where the pools, or the weights, are others */
  #aimAll({ roster }: Surroundings, all: readonly RosterPool[]): string {
    const isWeighted = this.aims.isWeighted(all);
    const seen = `${roster.changesOf(this.#key)} ${this.aims.changes}`;
    if (seen !== this.#seen) {
      this.#seen = seen;
      for (const row of [...this.#rows.values()]) this.#unaimRow(row);
    }
    if (this.#unaimed.size === 0) return seen;
    const unaimed = this.#unaimed;
    this.#unaimed = new Set();
    for (const request of unaimed) this.#aim(request, all, isWeighted);
    return seen;
  }

  #aim(request: QueuedRequest, all: readonly RosterPool[], isWeighted: boolean): void {
    const { pin, request: asked } = request;
    if (pin !== null) {
      const { adapterName } = asked;
      const isRight = ({ model }: RosterPool) => isNameOfEngine(pin, model, adapterName);
      this.#rowFor(`pinned ${pin} ${adapterName ?? ''}`, isRight).add(request);
      return;
    }
    if (!isWeighted) {
      this.#rowFor('any', () => true).add(request);
      return;
    }
    const engine = this.aims.next(ableOf(request, this.aims.allowed(request, all)));
    if (engine === null) this.#unaimed.add(request);
    else this.#rowFor(`engine ${engine}`, (pool) => engineOf(pool) === engine).add(request);
  }

  #rowFor(name: string, isRight: (pool: RosterPool) => boolean) {
    const row: Row = this.#rows.get(name) ?? {
      name,
      waiting: this.#limits.fairQueueing ? new FairQueue() : new ArrivalQueue(),
      among: (pools) => pools.filter(isRight),
    };
    this.#rows.set(name, row);
    const add = (request: QueuedRequest) => {
      row.waiting.push(request);
      this.#rowOf.set(request, row);
    };
    return { add };
  }

  #unaimRow(row: Row): void {
    for (const request of row.waiting.list(row.waiting.size)) {
      if (request.pin !== null) return;
      row.waiting.remove(request);
      this.#rowOf.delete(request);
      this.#unaimed.add(request);
    }
    this.#dropEmpty(row);
  }

  /** A row of which requests run keeps what they were charged for by itself. */
  #dropEmpty({ name, waiting }: Row): void {
    if (waiting.size === 0 && name !== 'any') this.#rows.delete(name);
  }
}

/** Requests that wait for the same pools. */
interface Row {
  name: string;
  waiting: WaitingQueue<QueuedRequest>;
  /** Those of a model's pools that they may go to. */
  among: (pools: readonly RosterPool[]) => readonly RosterPool[];
}

/** Those that can answer the request; all of them where none can: it is refused there, with the numbers. */
function ableOf(request: QueuedRequest, pools: readonly RosterPool[]): readonly RosterPool[] {
  const able = pools.filter((pool) => hasAdapter(pool, request) && fits(pool, request));
  return able.length > 0 ? able : pools;
}

/**
 * Workers that can compute the prompt for those that answer; null: the answering worker does so at once,
 * because the prompt is short, already computed or almost fully cached, or because they have no room.
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
  readonly #given: Map<RosterPool, number>;

  constructor(
    pools: readonly RosterPool[],
    { offers, routes }: Surroundings,
    given: Map<RosterPool, number>,
  ) {
    this.#pools = pools;
    this.#offers = offers;
    this.#routes = routes;
    this.#given = given;
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

  /** Pool for a request that was offered before, whatever room it has. */
  forAgain(request: QueuedRequest): Found | null {
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
