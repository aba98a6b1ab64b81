import type { PoolName } from '../../callbacks/nats/names.js';
import { offersWanted, type RosterWorker, type WorkerRoster } from '../../callbacks/nats/worker-roster.js';
import { QueueFullError } from '../../callbacks/token-request.js';
import { FairQueue } from '../queue/fair-queue.js';
import { QueuePace } from '../queue/queue-pace.js';
import { ArrivalQueue, type WaitingQueue } from '../queue/waiting-queue.js';
import type { QueuedRequest } from './queued-request.js';

/** Bounds and order of a model's waiting requests; see InProcessHostOptions. */
export interface QueueLimits {
  maxQueueSize: number;
  maxQueueSizePerKey?: number | undefined;
  fairQueueing: boolean;
}

/** A request whose turn it is, and the workers that it goes to. */
export interface Next {
  request: QueuedRequest;
  pool: PoolName;
  /** These workers only compute its prompt. */
  isPrefill: boolean;
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
    const { maxQueueSize, maxQueueSizePerKey = maxQueueSize } = this.#limits;
    const { size } = this;
    const retryAfterMs = () => this.#pace.waitMs(size, nowMs);
    if (size >= maxQueueSize) throw new QueueFullError(maxQueueSize, { retryAfterMs: retryAfterMs() });
    if (maxQueueSizePerKey < maxQueueSize && this.#waiting.sizeOf(key) >= maxQueueSizePerKey) {
      throw new QueueFullError(maxQueueSizePerKey, { ofOneKey: true, retryAfterMs: retryAfterMs() });
    }
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

  /**
   * Takes out the requests that are to be offered now.
   * @param offers number of the gateway's requests that each pool has in the stream, untaken
   */
  next(
    roster: WorkerRoster,
    offers: ReadonlyMap<string, number>,
    allowsDifferentBits: boolean,
    nowMs: number,
  ): Next[] {
    if (this.size === 0) return [];
    const pools = new Pools(roster.ofModel(this.#key), offers);
    const prefillers = new Pools(roster.prefillersOf(this.#key), offers);
    const next: Next[] = [];
    for (const request of [...this.#again]) {
      if (request.isSuspect && this.#onTrial?.isSuspect) continue;
      const prefiller = prefillerOf(request, prefillers, pools);
      const pool = prefiller ?? pools.forAgain(request, allowsDifferentBits);
      if (pool === null) continue;
      this.#again.delete(request);
      if (request.isSuspect) this.#onTrial = request;
      next.push({ request, pool, isPrefill: prefiller !== null });
    }
    const before = next.length;
    // The longest request decides where the next one can go: which one it is shows when it is taken.
    while (this.#waiting.size > 0 && pools.hasRoom) {
      const [request] = this.#waiting.take(1);
      const prefiller = prefillerOf(request!, prefillers, pools);
      const pool = prefiller ?? pools.forNew(request!);
      if (pool === null) this.#again.add(request!);
      else next.push({ request: request!, pool, isPrefill: prefiller !== null });
    }
    this.#pace.note(next.length - before, nowMs);
    return next;
  }
}

/**
 * Workers that can compute the prompt for those that answer; null: whoever answers it does so at once, since it is
 * short, was computed already, or they have no room.
 */
function prefillerOf(request: QueuedRequest, prefillers: Pools, pools: Pools): PoolName | null {
  return request.wantsPrefill ? prefillers.forPrompt(request, pools.layouts) : null;
}

interface Pool {
  name: PoolName;
  takers: RosterWorker[];
  /** Requests that may still be offered to it. */
  room: number;
}

/** The pools of a model's workers, with the room that each has. */
class Pools {
  readonly #pools = new Map<string, Pool>();

  constructor(workers: readonly RosterWorker[], offers: ReadonlyMap<string, number>) {
    for (const worker of workers) {
      if (worker.isLeaving) continue;
      const { pool: fingerprint, model } = worker;
      const pool = this.#pools.get(fingerprint) ?? {
        name: { model: model.name, fingerprint },
        takers: [],
        room: 0,
      };
      pool.takers.push(worker);
      this.#pools.set(fingerprint, pool);
    }
    for (const [fingerprint, pool] of this.#pools) {
      pool.room = offersWanted(pool.takers) - (offers.get(fingerprint) ?? 0);
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

  get hasRoom(): boolean {
    return [...this.#pools.values()].some(({ room }) => room > 0);
  }

  /** Pool for a request that was offered before: its own one, or any as long as nothing was answered. */
  forAgain(request: QueuedRequest, allowsDifferentBits: boolean): PoolName | null {
    const { pool } = request;
    const own = pool === null ? undefined : this.#pools.get(pool.fingerprint);
    if (own !== undefined) return this.#take(own);
    if (request.hasBegun && !allowsDifferentBits) return null;
    return this.#best(request, () => true);
  }

  forNew(request: QueuedRequest): PoolName | null {
    return this.#best(request, ({ room }) => room > 0);
  }

  /** Pool with room for a prompt, whose blocks have one of these layouts. */
  forPrompt(request: QueuedRequest, layouts: ReadonlySet<string>): PoolName | null {
    return this.#best(request, ({ room, takers }) => room > 0 && layouts.has(takers[0]!.layout ?? ''));
  }

  #best(request: QueuedRequest, isRight: (pool: Pool) => boolean): PoolName | null {
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
    const [best] = (fitting.length > 0 ? fitting : pools).sort(
      (a, b) => takesBlocks(b) - takesBlocks(a) || b.room - a.room,
    );
    return best === undefined ? null : this.#take(best);
  }

  #take(pool: Pool): PoolName {
    pool.room--;
    return pool.name;
  }
}
