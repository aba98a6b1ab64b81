export interface StoredBlock {
  blockHash: number;
  tokens: number[];
  /** Task id of the LoRA adapter; null: no adapter. */
  loraId: bigint | null;
  /** Only sequences of the same salt find the block; 0n: no salt. */
  cacheSalt: bigint;
  /** Pool of the block; 0: the primary pool, where every block begins. */
  cacheLevel: number;
  priority: number;
}

/**
 * Changes of the cached blocks. Block hashes are chained: each stands for all tokens up to the block's end, and for salt and
 * adapter. Cache level
 * 0 is the primary pool, 1 the secondary one; a block that is swapped out or in changes its level. hasState comes with models that have
 * states alone: a block that is stored has none at first, and one that is removed has none any more.
 */
export type KvCacheEventData =
  | { type: 'created'; numBlocksPerCacheLevel: number[] }
  | { type: 'stored'; parentHash: number | null; blocks: StoredBlock[] }
  | { type: 'removed'; blockHashes: number[] }
  | { type: 'updated'; blockHash: number; priority: Change }
  | { type: 'updated'; blockHash: number; cacheLevel: Change }
  | { type: 'updated'; blockHash: number; hasState: StateChange };

/** A block whose state snapshot has been kept, so that a prompt can continue from it, or has been dropped. */
export interface StateChange {
  oldValue: boolean;
  newValue: boolean;
}

export interface Change {
  oldValue: number;
  newValue: number;
}

export interface KvCacheEvent {
  /** Number of the event: counts from 0 without a gap, also over events that were lost. */
  eventId: number;
  data: KvCacheEventData;
}

/**
 * The events since the last drain, at most `maxEvents` of them: beyond that the oldest are lost, which shows as a gap in
 * the ids.
 */
export class KvCacheEvents {
  readonly #maxEvents: number;
  #events: KvCacheEvent[] = [];
  #nextId = 0;

  constructor(maxEvents: number) {
    this.#maxEvents = maxEvents;
  }

  /** False if there is no room for events, so that callers need not create them. */
  get isOn(): boolean {
    return this.#maxEvents > 0;
  }

  add(data: KvCacheEventData): void {
    if (!this.isOn) return;
    if (this.#events.length >= this.#maxEvents) this.#events.shift();
    this.#events.push({ eventId: this.#nextId, data });
    this.#nextId += 1;
  }

  drain(): KvCacheEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }
}
