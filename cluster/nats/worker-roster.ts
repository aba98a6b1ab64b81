import type { Beat, ModelCard } from './beat.js';
import { NotedOrder, noLinks } from './noted-order.js';
import { noShare, RosterPool, type RosterWorker } from './roster-pool.js';

/** Times by which a worker is believed to be lost, in milliseconds. */
export interface SilenceLimits {
  /** After this much silence the worker is asked whether it is there. */
  probeAfterMs: number;
  /** After this much it counts as lost: it is dead, stopped, or cut off. */
  lostAfterMs: number;
  /**
   * A worker reports every second which requests it has. After this long without, what it had is taken to be
   * given up.
   */
  untoldAfterMs: number;
}

/**
 * Change that a beat makes; `refused`: there are too many; `cardless`: no worker has described its pool, so
 * it is left out for now.
 */
export type RosterChange = 'joined' | 'beat' | 'leaving' | 'gone' | 'unknown' | 'refused' | 'cardless';

export interface WorkerRosterOptions {
  /** Number of requests that one worker is offered; default: offersFor. Called whenever what the roster knows of it has changed. */
  offersOf?: (worker: RosterWorker) => number;
  maxWorkers?: number;
}

/** Most workers of a roster, and most pools of these. */
const MAX_WORKERS = 20_000;
const MAX_POOLS = 512;
/** Most pools without a worker whose names are still known. */
const MAX_GONE_POOLS = 64;

export const ROSTER_IS_FULL = `a gateway knows ${MAX_WORKERS} workers of ${MAX_POOLS} pools at most.`;

/** The pools of one model. */
interface ModelPools {
  /** Those that answer requests, and those that compute prompts for others; none is without workers. */
  answering: RosterPool[];
  prefilling: RosterPool[];
  /** Workers that answer requests and take them. */
  numTakers: number;
  /** How often a pool got its first taker, or lost its last one. */
  changes: number;
}

/** Length of a period, in which a worker that sends beats changes its place in their order once. */
const PERIOD_MS = 250;

const NO_POOLS: readonly RosterPool[] = [];

/**
 * The workers that a gateway knows. A state machine without clock or I/O: times are the caller's, on one
 * clock of its own; no worker's clock is read.
 *
 *   model (key) -> its pools -> takers, leaving; sums of offers, free places, blocks
 *   in the order of their last beats, and of those that may have requests, in the order of their last reports
 *
 * No question that a request, a beat or a message of frames asks costs more where there are more workers.
 */
export class WorkerRoster {
  readonly #offersOf: (worker: RosterWorker) => number;
  readonly #maxWorkers: number;
  readonly #workers = new Map<string, RosterWorker>();
  readonly #pools = new Map<string, RosterPool>();
  readonly #models = new Map<string, ModelPools>();
  /** What pools were whose last worker is gone, by their fingerprints, the latest last. */
  readonly #gone = new Map<string, RosterPool>();
  readonly #heard = new NotedOrder<RosterWorker>(({ heard }) => heard);
  readonly #told = new NotedOrder<RosterWorker>(({ told }) => told);
  /** Never the same twice, also where a model comes again. */
  #nextChange = 1;

  constructor({ offersOf = offersFor, maxWorkers = MAX_WORKERS }: WorkerRosterOptions = {}) {
    this.#offersOf = offersOf;
    this.#maxWorkers = maxWorkers;
  }

  get size(): number {
    return this.#workers.size;
  }

  find(id: string): RosterWorker | undefined {
    return this.#workers.get(id);
  }

  /** @param fingerprint of the pool */
  pool(fingerprint: string): RosterPool | undefined {
    return this.#pools.get(fingerprint);
  }

  /** Pools whose workers answer requests of a model. @param key see modelKey */
  poolsOf(key: string): readonly RosterPool[] {
    return this.#models.get(key)?.answering ?? NO_POOLS;
  }

  /** What pools of a model were that answered its requests, and have no worker now: the latest MAX_GONE_POOLS of all models. */
  goneOf(key: string): ModelCard[] {
    return [...this.#gone.values()]
      .filter((pool) => pool.key === key && !pool.isPrefill)
      .map(({ model }) => model);
  }

  /** Pools whose workers compute prompts of a model for others. */
  prefillersOf(key: string): readonly RosterPool[] {
    return this.#models.get(key)?.prefilling ?? NO_POOLS;
  }

  /** Number of workers that answer requests of a model, and take them. */
  numTakersOf(key: string): number {
    return this.#models.get(key)?.numTakers ?? 0;
  }

  /** Another number than before: a pool of the model has got its first taker, or lost its last one. */
  changesOf(key: string): number {
    return this.#models.get(key)?.changes ?? 0;
  }

  /** A worker of the pool takes requests. */
  hasTakers(fingerprint: string): boolean {
    return (this.#pools.get(fingerprint)?.takers.size ?? 0) > 0;
  }

  beat(beat: Beat, nowMs: number): RosterChange {
    const { worker: id, places, held, maxBlocks, usedBlocks, isLeaving, isGone } = beat;
    const { layout = null, cacheNumber = null } = beat;
    const before = this.#workers.get(id);
    if (isGone) {
      this.remove(id);
      return before === undefined ? 'unknown' : 'gone';
    }
    const pool = this.#poolOf(beat, before);
    if (typeof pool === 'string') return pool;
    const worker = before ?? this.#add(id, pool, nowMs);
    const wasLeaving = worker.isLeaving;
    worker.places = places;
    worker.held = held;
    worker.maxBlocks = maxBlocks;
    worker.usedBlocks = usedBlocks;
    worker.cacheNumber = cacheNumber;
    worker.isLeaving = isLeaving;
    if (before?.pool !== pool) this.#move(worker, pool, layout);
    else if (wasLeaving !== isLeaving || worker.layout !== layout) this.#place(worker, layout);
    this.heard(worker, nowMs);
    this.reckon(worker);
    if (before === undefined) return 'joined';
    return isLeaving && !wasLeaving ? 'leaving' : 'beat';
  }

  /** The pool that the worker is in from now on, or why it is in none. */
  #poolOf(
    { pool: fingerprint, model, isPrefill = false }: Beat,
    before: RosterWorker | undefined,
  ): RosterPool | 'refused' | 'cardless' {
    const pool = this.#pools.get(fingerprint);
    if (before !== undefined && before.pool === pool) return pool;
    if (before === undefined && this.#workers.size >= this.#maxWorkers) return 'refused';
    if (pool !== undefined) return pool;
    if (model === undefined) return 'cardless';
    if (this.#pools.size >= MAX_POOLS) return 'refused';
    const made = new RosterPool(fingerprint, model, isPrefill);
    this.#pools.set(fingerprint, made);
    this.#gone.delete(fingerprint);
    const pools = this.#models.get(made.key) ?? { answering: [], prefilling: [], numTakers: 0, changes: 0 };
    this.#models.set(made.key, pools);
    (isPrefill ? pools.prefilling : pools.answering).push(made);
    return made;
  }

  #add(id: string, pool: RosterPool, nowMs: number): RosterWorker {
    const worker: RosterWorker = {
      ...{ id, pool, places: 0, held: 0, maxBlocks: 0, usedBlocks: 0, layout: null, cacheNumber: null },
      ...{
        isLeaving: false,
        heardMs: nowMs,
        notedIn: -1,
        toldMs: nowMs,
        isProbed: false,
        share: noShare(),
      },
      ...{ heard: noLinks<RosterWorker>(), told: noLinks<RosterWorker>() },
    };
    this.#workers.set(id, worker);
    return worker;
  }

  #move(worker: RosterWorker, pool: RosterPool, layout: string | null): void {
    const old = worker.pool;
    if (old !== pool) this.#takeOut(worker);
    worker.pool = pool;
    this.#place(worker, layout);
  }

  #place(worker: RosterWorker, layout: string | null): void {
    this.#counting(worker.pool, () => worker.pool.place(worker, layout));
  }

  #takeOut(worker: RosterWorker): void {
    const { pool } = worker;
    this.#counting(pool, () => pool.remove(worker));
    if (pool.size > 0) return;
    this.#pools.delete(pool.name.fingerprint);
    this.#gone.set(pool.name.fingerprint, pool);
    if (this.#gone.size > MAX_GONE_POOLS) this.#gone.delete(this.#gone.keys().next().value!);
    const pools = this.#models.get(pool.key)!;
    pools.answering = pools.answering.filter((one) => one !== pool);
    pools.prefilling = pools.prefilling.filter((one) => one !== pool);
    if (pools.answering.length + pools.prefilling.length === 0) this.#models.delete(pool.key);
  }

  /** Notes what a change of a pool makes of its model's numbers. */
  #counting(pool: RosterPool, change: () => void): void {
    const before = pool.takers.size;
    change();
    if (pool.isPrefill) return;
    const pools = this.#models.get(pool.key)!;
    pools.numTakers += pool.takers.size - before;
    if ((before === 0) !== (pool.takers.size === 0)) pools.changes = this.#nextChange++;
  }

  /** What a worker is offered may have changed. */
  reckon(worker: RosterWorker): void {
    worker.pool.reckon(worker, this.#offersOf(worker));
  }

  /** Something came from a worker. */
  heard(worker: RosterWorker, nowMs: number): void {
    worker.heardMs = nowMs;
    worker.isProbed = false;
    // Most messages come here: thousands of workers change places only now and then, and their neighbours are not looked at.
    const period = Math.floor(nowMs / PERIOD_MS);
    if (worker.notedIn === period) return;
    worker.notedIn = period;
    this.#heard.note(worker);
  }

  /** It reported which requests it has. */
  told(worker: RosterWorker, nowMs: number): void {
    this.heard(worker, nowMs);
    worker.toldMs = nowMs;
    this.#told.note(worker);
  }

  /** A request went to a worker (1), or ended there (-1): its next beat knows better. */
  noteHeld(worker: RosterWorker, change: 1 | -1): void {
    worker.held = Math.max(0, worker.held + change);
    this.reckon(worker);
  }

  /** No beat could arrive for a while, and that was no worker's fault. */
  beginAnew(nowMs: number): void {
    for (const worker of this.#workers.values()) this.told(worker, nowMs);
  }

  /** Workers that have been silent for too long: to be asked, or to be given up. Those to be asked are named once. */
  silent(
    nowMs: number,
    { probeAfterMs, lostAfterMs }: Omit<SilenceLimits, 'untoldAfterMs'>,
  ): { toProbe: string[]; lost: string[] } {
    const toProbe: string[] = [];
    const lost: string[] = [];
    for (const worker of this.#heard) {
      const least = Math.min(probeAfterMs, lostAfterMs);
      // This one and all after it sent a beat since that period began.
      if (nowMs - worker.notedIn * PERIOD_MS < least) break;
      const silence = nowMs - worker.heardMs;
      if (silence < least) continue;
      if (silence >= lostAfterMs) lost.push(worker.id);
      else if (!worker.isProbed) {
        worker.isProbed = true;
        toProbe.push(worker.id);
      }
    }
    return { toProbe, lost };
  }

  /**
   * Workers with requests that send beats, and have not reported for too long which ones they have: a worker
   * that was cut off, and has given up what it had, has nothing to report.
   * @param hasRequests of this gateway
   */
  reticent(
    nowMs: number,
    { untoldAfterMs }: Pick<SilenceLimits, 'untoldAfterMs'>,
    hasRequests: (worker: string) => boolean,
  ): string[] {
    const reticent: string[] = [];
    for (const worker of this.#told) {
      if (nowMs - worker.toldMs < untoldAfterMs) break;
      // It comes back into the order with its next request.
      if (!hasRequests(worker.id)) this.#told.delete(worker);
      // A worker that is altogether silent may not have given up anything: it may be lost.
      else if (worker.heardMs - worker.toldMs >= untoldAfterMs) reticent.push(worker.id);
    }
    return reticent;
  }

  /** It was asked, and the question or its answer may be lost: it is asked again. */
  noteUnanswered(id: string): void {
    const worker = this.#workers.get(id);
    if (worker !== undefined) worker.isProbed = false;
  }

  remove(id: string): void {
    const worker = this.#workers.get(id);
    if (worker === undefined) return;
    this.#workers.delete(id);
    this.#heard.delete(worker);
    this.#told.delete(worker);
    this.#takeOut(worker);
  }
}

/** Requests that may lie in the stream for each worker beyond its free places, so that none waits for a message. */
export const AHEAD_PER_WORKER = 1;

/**
 * Number of requests that one gateway may have in the stream, untaken, for each worker of a pool. What lies there has its order; what
 * waits in the gateway goes by priority and fair shares, can be withdrawn, and is counted for its client. So there is
 * as little as keeps the workers busy.
 */
export function offersFor({ places, held }: Pick<RosterWorker, 'places' | 'held'>): number {
  return Math.max(0, places - held) + AHEAD_PER_WORKER;
}
