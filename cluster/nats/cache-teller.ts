import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import {
  type CacheAsk,
  type CacheChange,
  type CachePart,
  MAX_CACHE_BLOCKS,
  MAX_MESSAGE_BLOCKS,
} from './cache-messages.js';

export interface CacheTellerOptions {
  worker: string;
  /** Publishes a change to all gateways. */
  send: (change: CacheChange) => void;
  /**
   * Most blocks that are reported; default MAX_CACHE_BLOCKS. Blocks stored beyond this number are not
   * reported.
   */
  maxBlocks?: number;
  /** Most blocks in one message; default MAX_MESSAGE_BLOCKS. */
  maxInMessage?: number;
}

/** Most changes that can be sent once more, and most blocks in them. */
const MAX_KEPT = 1_024;
const MAX_KEPT_BLOCKS = 2 ** 16;

/** All blocks at one number, as parts of it are given out. */
interface Whole {
  next: number;
  blocks: Float64Array;
  /** See CacheTeller.#states. */
  states: ReadonlySet<number> | null;
}

/**
 * Publishes which blocks a worker's cache has: numbered changes, and answers to gateways that have missed
 * some, since core NATS stores nothing and gateways come late.
 *
 *   events of an iteration --> blocks of the cache --> change n to n + 1, to all gateways
 *                                   |                     |
 *                                   |                     '- kept for a while --> change m to n, to one that has missed them
 *                                   '- copied, with their number ---------------> parts of the whole, to one that has nothing
 *
 * It never reports a block that is not there: after an engine that is new, has died, or whose events were
 * lost, it starts over.
 */
export class CacheTeller {
  readonly #options: Required<CacheTellerOptions>;
  readonly #blocks = new Set<number>();
  /** Blocks after which states are kept; null: the model is not known to have any. */
  #states: Set<number> | null = null;
  #number = 0;
  #nextEventId = 0;
  #kept: CacheChange[] = [];
  #keptBlocks = 0;
  #whole: Whole | null = null;

  constructor(options: CacheTellerOptions) {
    this.#options = { maxBlocks: MAX_CACHE_BLOCKS, maxInMessage: MAX_MESSAGE_BLOCKS, ...options };
  }

  /** Number of the cache as it was published: see CacheChange. */
  get number(): number {
    return this.#number;
  }

  /** Notes the events of an iteration, in their order, and publishes what they change. */
  note(events: readonly KvCacheEvent[]): void {
    const touched = new Set<number>();
    let isAnew = false;
    for (const { eventId, data } of events) {
      if (data.type === 'created' || eventId !== this.#nextEventId) {
        isAnew = true;
        touched.clear();
        this.#clear();
      }
      this.#nextEventId = eventId + 1;
      if (data.type === 'stored') for (const { blockHash } of data.blocks) this.#store(blockHash, touched);
      if (data.type === 'removed') {
        for (const hash of data.blockHashes) if (this.#remove(hash)) touched.add(hash);
      }
      if (data.type === 'updated' && 'hasState' in data)
        this.#noteState(data.blockHash, data.hasState.newValue, touched);
    }
    this.#tell(touched, isAnew);
  }

  /** Notes that the engine died, and its cache with it. */
  lose(): void {
    this.#clear();
    this.#tell(new Set(), true);
  }

  #clear(): void {
    this.#blocks.clear();
    this.#states?.clear();
  }

  #remove(hash: number): boolean {
    this.#states?.delete(hash);
    return this.#blocks.delete(hash);
  }

  #noteState(hash: number, hasState: boolean, touched: Set<number>): void {
    this.#states ??= new Set();
    if (!this.#blocks.has(hash) || this.#states.has(hash) === hasState) return;
    if (hasState) this.#states.add(hash);
    else this.#states.delete(hash);
    touched.add(hash);
  }

  #store(hash: number, touched: Set<number>): void {
    if (this.#blocks.has(hash) || this.#blocks.size >= this.#options.maxBlocks) return;
    this.#blocks.add(hash);
    touched.add(hash);
  }

  #tell(touched: ReadonlySet<number>, isAnew: boolean): void {
    const all = [...touched];
    const { maxInMessage, send } = this.#options;
    for (let start = 0; start < all.length || (isAnew && start === 0); start += maxInMessage) {
      const part = all.slice(start, start + maxInMessage);
      const change = this.#change(this.#number, this.#number + 1, isAnew && start === 0, part);
      this.#number += 1;
      this.#keep(change);
      send(change);
    }
  }

  /** @param touched blocks that were stored or removed; what the cache has now decides which */
  #change(from: number, next: number, isAnew: boolean, touched: readonly number[]): CacheChange {
    const { worker } = this.#options;
    const stored = Float64Array.from(touched.filter((hash) => this.#blocks.has(hash)));
    const removed = Float64Array.from(isAnew ? [] : touched.filter((hash) => !this.#blocks.has(hash)));
    const withState = statesOf(stored, this.#states);
    return { kind: 'cacheChange', worker, from, next, isAnew, stored, removed, ...withState };
  }

  #keep(change: CacheChange): void {
    // Earlier changes are no longer needed.
    if (change.isAnew) this.#kept = [];
    if (change.isAnew) this.#keptBlocks = 0;
    this.#kept.push(change);
    this.#keptBlocks += sizeOf(change);
    while (this.#kept.length > MAX_KEPT || this.#keptBlocks > MAX_KEPT_BLOCKS)
      this.#keptBlocks -= sizeOf(this.#kept.shift()!);
  }

  /** What a gateway needs that asks. */
  answer({ from, whole }: CacheAsk): CacheChange | CachePart {
    if (whole !== null && this.#whole?.next === whole.next) return this.#part(this.#whole, whole.offset);
    return this.#since(from) ?? this.#part(this.#wholeNow(), 0);
  }

  /** The changes since a number as one; null: they are not known any more, or too many. */
  #since(from: number): CacheChange | null {
    const isAnew = this.#kept[0]?.isAnew === true;
    const first = isAnew ? 0 : (this.#kept[0]?.from ?? this.#number);
    if (from < first || from > this.#number) return null;
    const later = this.#kept.filter(({ next }) => next > from);
    const touched = new Set(later.flatMap(({ stored, removed }) => [...stored, ...removed]));
    if (touched.size > this.#options.maxInMessage) return null;
    return this.#change(from, this.#number, later[0]?.isAnew === true, [...touched]);
  }

  /** One that was given out before will do, as long as what has changed since then is known. */
  #wholeNow(): Whole {
    if (this.#whole === null || this.#since(this.#whole.next) === null)
      this.#whole = {
        next: this.#number,
        blocks: Float64Array.from(this.#blocks),
        states: this.#states && new Set(this.#states),
      };
    return this.#whole;
  }

  #part({ next, blocks, states }: Whole, offset: number): CachePart {
    const part = blocks.slice(offset, offset + this.#options.maxInMessage);
    return {
      kind: 'cachePart',
      next,
      offset: Math.min(offset, blocks.length),
      total: blocks.length,
      blocks: part,
      ...statesOf(part, states),
    };
  }
}

function statesOf(blocks: Float64Array, states: ReadonlySet<number> | null): { withState?: Float64Array } {
  return states === null ? {} : { withState: blocks.filter((hash) => states.has(hash)) };
}

function sizeOf({ stored, removed }: CacheChange): number {
  return stored.length + removed.length;
}
