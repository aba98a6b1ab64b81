import { type ModelCard, modelKey } from './beat.js';
import type { PoolName } from './names.js';
import type { Links } from './noted-order.js';

/** A worker, as its last beat has it. */
export interface RosterWorker {
  readonly id: string;
  pool: RosterPool;
  places: number;
  /** Requests that it has, of all gateways: as it said, and what changed since then. */
  held: number;
  maxBlocks: number;
  usedBlocks: number;
  /** See Beat; null: it neither gives nor takes blocks. */
  layout: string | null;
  /** See Beat; null: it takes no requests but those of the stream. */
  cacheNumber: number | null;
  isLeaving: boolean;
  heardMs: number;
  /** Number of the period in which it was last put at the end of the order of those that sent a beat. */
  notedIn: number;
  /** When it last reported which requests it has, or, if it had none before, when it got its first one. */
  toldMs: number;
  /** It was asked, and has not answered yet. */
  isProbed: boolean;
  /** What of the sums of its pool is its own. */
  readonly share: Share;
  /** Its places among workers by the times of their last beat and of their last report. */
  readonly heard: Links<RosterWorker>;
  readonly told: Links<RosterWorker>;
}

/** Numbers of one worker that takes requests, or of all of a pool. */
export interface Share {
  /** Requests that this gateway may have in the stream for it, or send to it. */
  offers: number;
  /** Places that are free. */
  free: number;
  /** Those of workers that report nothing about their caches: requests reach them only through the stream. */
  streamFree: number;
  maxBlocks: number;
  usedBlocks: number;
}

export const noShare = (): Share => ({ offers: 0, free: 0, streamFree: 0, maxBlocks: 0, usedBlocks: 0 });

/**
 * The workers of one pool, and sums over those that take requests. The sums are updated as workers change, so
 * that finding out whether one has room does not take counting thousands of workers.
 */
export class RosterPool {
  readonly name: PoolName;
  /** See modelKey. */
  readonly key: string;
  /** Workers of one pool share one card. */
  readonly model: ModelCard;
  /** Its workers only compute blocks of prompts: see Beat. */
  readonly isPrefill: boolean;
  /** Workers that take requests, and those that do not any more. */
  readonly takers = new Set<RosterWorker>();
  readonly leaving = new Set<RosterWorker>();
  readonly sums = noShare();
  /** Layouts of the blocks of takers, and how many have each. */
  readonly #layouts = new Map<string, number>();
  /** Fewest blocks that a taker has; null: it is to be looked up. */
  #fewestBlocks: number | null = null;

  constructor(fingerprint: string, model: ModelCard, isPrefill: boolean) {
    this.name = { model: model.name, fingerprint };
    this.key = modelKey(model);
    this.model = model;
    this.isPrefill = isPrefill;
  }

  get size(): number {
    return this.takers.size + this.leaving.size;
  }

  /** Layouts of the blocks that its workers take. */
  get layouts(): Iterable<string> {
    return this.#layouts.keys();
  }

  /** A worker of it takes blocks of this layout. */
  takesLayout(layout: string): boolean {
    return this.#layouts.has(layout);
  }

  /** Fewest blocks that the cache of a taker has; Infinity: there is none. */
  get fewestBlocks(): number {
    if (this.#fewestBlocks === null) {
      let fewest = Number.POSITIVE_INFINITY;
      for (const { maxBlocks } of this.takers) if (maxBlocks < fewest) fewest = maxBlocks;
      this.#fewestBlocks = fewest;
    }
    return this.#fewestBlocks;
  }

  /** A worker comes, or its layout or its leaving may be others. To be followed by `reckon`. */
  place(worker: RosterWorker, layout: string | null): void {
    this.remove(worker);
    worker.layout = layout;
    if (worker.isLeaving) {
      this.leaving.add(worker);
      return;
    }
    this.takers.add(worker);
    if (layout !== null) this.#layouts.set(layout, (this.#layouts.get(layout) ?? 0) + 1);
  }

  remove(worker: RosterWorker): void {
    this.leaving.delete(worker);
    this.#fewestBlocks = null;
    if (!this.takers.delete(worker)) return;
    const { layout } = worker;
    if (layout !== null) {
      const count = this.#layouts.get(layout)! - 1;
      if (count === 0) this.#layouts.delete(layout);
      else this.#layouts.set(layout, count);
    }
    this.#set(worker.share, 0, 0, 0, 0, 0);
  }

  /** Brings a worker's share up to date. @param offers see Share */
  reckon(worker: RosterWorker, offers: number): void {
    if (!this.takers.has(worker)) return;
    const free = Math.max(0, worker.places - worker.held);
    const streamFree = worker.cacheNumber === null ? free : 0;
    this.#set(worker.share, offers, free, streamFree, worker.maxBlocks, worker.usedBlocks);
  }

  #set(
    share: Share,
    offers: number,
    free: number,
    streamFree: number,
    maxBlocks: number,
    usedBlocks: number,
  ): void {
    const { sums } = this;
    sums.offers += offers - share.offers;
    sums.free += free - share.free;
    sums.streamFree += streamFree - share.streamFree;
    sums.usedBlocks += usedBlocks - share.usedBlocks;
    if (maxBlocks !== share.maxBlocks) {
      sums.maxBlocks += maxBlocks - share.maxBlocks;
      this.#fewestBlocks = null;
    }
    share.offers = offers;
    share.free = free;
    share.streamFree = streamFree;
    share.maxBlocks = maxBlocks;
    share.usedBlocks = usedBlocks;
  }
}
