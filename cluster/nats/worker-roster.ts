import { type Beat, type ModelCard, modelKey } from './beat.js';

/** Times by which a worker is believed to be lost, in milliseconds. */
export interface SilenceLimits {
  /** After this much silence the worker is asked whether it is there. */
  probeAfterMs: number;
  /** After this much it counts as lost: it is dead, stopped, or cut off. */
  lostAfterMs: number;
  /** A worker tells every second which requests it has. After this long without, what it had is taken to be given up. */
  untoldAfterMs: number;
}

/** A worker, as its last beat has it. */
export interface RosterWorker {
  id: string;
  pool: string;
  model: ModelCard;
  places: number;
  /** Requests that it has, of all gateways: as it said, and what changed since then. */
  held: number;
  maxBlocks: number;
  usedBlocks: number;
  /** It only computes blocks of prompts: see Beat. */
  isPrefill: boolean;
  /** See Beat; null: it neither gives nor takes blocks. */
  layout: string | null;
  /** See Beat; null: it takes no requests but those of the stream. */
  cacheNumber: number | null;
  isLeaving: boolean;
  heardMs: number;
  /** When it last told which requests it has, or, if it had none before, when it got its first one. */
  toldMs: number;
  /** It was asked, and has not answered yet. */
  isProbed: boolean;
}

/** Change that a beat makes; `refused`: there are too many. */
export type RosterChange = 'joined' | 'beat' | 'leaving' | 'gone' | 'unknown' | 'refused';

/** Most workers of a roster, and most pools of these. */
const MAX_WORKERS = 20_000;
const MAX_POOLS = 512;

export const ROSTER_IS_FULL = `a gateway knows ${MAX_WORKERS} workers of ${MAX_POOLS} pools at most.`;

/** Workers of one pool have one card. */
interface RosterPool {
  model: ModelCard;
  size: number;
}

/**
 * The workers that a gateway has heard of. A state machine without clock or I/O: times are the caller's, on one clock
 * of its own; no worker's clock is read.
 */
export class WorkerRoster {
  readonly #workers = new Map<string, RosterWorker>();
  readonly #pools = new Map<string, RosterPool>();
  readonly #maxWorkers: number;

  constructor(maxWorkers = MAX_WORKERS) {
    this.#maxWorkers = maxWorkers;
  }

  list(): RosterWorker[] {
    return [...this.#workers.values()];
  }

  find(id: string): RosterWorker | undefined {
    return this.#workers.get(id);
  }

  /** Workers of a model that answer requests, in all its pools. @param key see modelKey */
  ofModel(key: string): RosterWorker[] {
    return this.list().filter(({ model, isPrefill }) => !isPrefill && modelKey(model) === key);
  }

  /** Workers that compute prompts of a model for others. */
  prefillersOf(key: string): RosterWorker[] {
    return this.list().filter(({ model, isPrefill }) => isPrefill && modelKey(model) === key);
  }

  /** Workers of a pool that take requests. */
  takersOf(pool: string): RosterWorker[] {
    return this.list().filter((worker) => worker.pool === pool && !worker.isLeaving);
  }

  beat(beat: Beat, nowMs: number): RosterChange {
    const { worker: id, pool, places, held, maxBlocks, usedBlocks, isLeaving, isGone } = beat;
    const { isPrefill = false, layout = null, cacheNumber = null } = beat;
    const before = this.#workers.get(id);
    if (isGone) {
      this.remove(id);
      return before === undefined ? 'unknown' : 'gone';
    }
    const model = this.#cardOf(beat, before);
    if (model === null) return 'refused';
    const heard = { heardMs: nowMs, toldMs: before?.toldMs ?? nowMs, isProbed: false };
    const kind = { id, pool, model, isPrefill, layout, cacheNumber };
    this.#workers.set(id, { ...kind, places, held, maxBlocks, usedBlocks, isLeaving, ...heard });
    if (before === undefined) return 'joined';
    return isLeaving && !before.isLeaving ? 'leaving' : 'beat';
  }

  /** Something else came from a worker. */
  heard(id: string, nowMs: number): void {
    const worker = this.#workers.get(id);
    if (worker === undefined) return;
    worker.heardMs = nowMs;
    worker.isProbed = false;
  }

  /** It told which requests it has. */
  told(id: string, nowMs: number): void {
    this.heard(id, nowMs);
    const worker = this.#workers.get(id);
    if (worker !== undefined) worker.toldMs = nowMs;
  }

  /** A request went to a worker (1), or ended there (-1): its next beat knows better. */
  noteHeld(id: string, change: 1 | -1): void {
    const worker = this.#workers.get(id);
    if (worker !== undefined) worker.held = Math.max(0, worker.held + change);
  }

  /** Nothing could be heard for a while, and that was no worker's fault. */
  beginAnew(nowMs: number): void {
    for (const id of this.#workers.keys()) this.told(id, nowMs);
  }

  /** Workers that have been silent for too long: to be asked, or to be given up. Those to be asked are named once. */
  silent(
    nowMs: number,
    { probeAfterMs, lostAfterMs }: Omit<SilenceLimits, 'untoldAfterMs'>,
  ): { toProbe: string[]; lost: string[] } {
    const toProbe: string[] = [];
    const lost: string[] = [];
    for (const worker of this.#workers.values()) {
      const silence = nowMs - worker.heardMs;
      if (silence >= lostAfterMs) lost.push(worker.id);
      else if (silence >= probeAfterMs && !worker.isProbed) {
        worker.isProbed = true;
        toProbe.push(worker.id);
      }
    }
    return { toProbe, lost };
  }

  /**
   * Workers among these that are heard, and have not told for too long which requests they have: a worker that was cut off, and has
   * given up what it had, has nothing to tell.
   */
  reticent(holders: Iterable<string>, { untoldAfterMs }: Pick<SilenceLimits, 'untoldAfterMs'>): string[] {
    return [...holders].filter((id) => {
      const worker = this.#workers.get(id);
      // Of one that is silent altogether nobody knows that it has given up anything: it may be lost.
      return worker !== undefined && worker.heardMs - worker.toldMs >= untoldAfterMs;
    });
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
    this.#leavePool(worker.pool);
  }

  /** The card of its pool, which the worker is in from now on; null: there is no room for it. */
  #cardOf({ pool: name, model }: Beat, before: RosterWorker | undefined): ModelCard | null {
    const pool = this.#pools.get(name);
    if (before?.pool === name) return pool!.model;
    if (before === undefined && this.#workers.size >= this.#maxWorkers) return null;
    if (pool === undefined && this.#pools.size >= MAX_POOLS) return null;
    if (before !== undefined) this.#leavePool(before.pool);
    if (pool === undefined) this.#pools.set(name, { model, size: 1 });
    else pool.size++;
    return pool?.model ?? model;
  }

  #leavePool(name: string): void {
    const pool = this.#pools.get(name)!;
    pool.size--;
    if (pool.size === 0) this.#pools.delete(name);
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
