import type { KvCacheEvent, KvCacheEventData, StoredBlock } from '../../kvcache/cache-events.js';

/** Where vLLM says that a block lies. Blocks of the secondary pool come back by themselves, so they count as there. */
const MEDIUM = 'GPU';

/**
 * An event with the fields of vLLM's `kv_events.py`, in their order; `type` first. On the wire it is a map, as vLLM has written it
 * since 0.24, or an array of the values, as before:
 *
 *   {type: "BlockStored", block_hashes, parent_block_hash, token_ids, block_size, lora_id, medium, lora_name, extra_keys?}
 *   {type: "BlockRemoved", block_hashes, medium}
 *   {type: "AllBlocksCleared"}
 */
export type WireEvent = Readonly<{ type: string } & Record<string, unknown>>;

export const WIRE_FORMATS = ['map', 'array'] as const;
export type WireFormat = (typeof WIRE_FORMATS)[number];

const CLEARED: WireEvent = { type: 'AllBlocksCleared' };

/** What a reader of events can learn about a block. */
export interface WireNames {
  /** Name of a LoRA adapter by its task id; null: it has gone. */
  adapterName(taskId: bigint): string | null;
}

/**
 * Turns the cache's events into those that readers know. Whatever readers could not know for certain is cleared: blocks of an
 * engine that has died, and all blocks if events were lost between engine and host.
 *
 *   created       -> AllBlocksCleared: a new engine has an empty cache
 *   stored        -> BlockStored; nothing where readers do not know the block in front of it
 *   removed       -> BlockRemoved, of blocks that readers know
 *   updated       -> nothing: a block with another priority, or in the secondary pool, is found as before; of states readers know nothing
 *   a gap in ids  -> AllBlocksCleared
 *
 * Readers hang a block below the one in front of it. Dynamo drops an event whose parent it does not have,
 * with a warning (ParentBlockNotFound). After a gap the cache still has blocks that readers have forgotten,
 * and stores others after them: these are reported once those in front of them have been.
 */
export class KvEventWire {
  readonly #names: WireNames;
  #nextId = 0;
  /** Hashes of the blocks that readers believe to be there: no more than the cache has. */
  readonly #known = new Set<number>();

  constructor(names: WireNames) {
    this.#names = names;
  }

  /** Events of one iteration, in their order. */
  translate(events: readonly KvCacheEvent[]): WireEvent[] {
    return events.flatMap(({ eventId, data }) => {
      const isNew = data.type === 'created';
      const isGap = !isNew && eventId !== this.#nextId;
      this.#nextId = eventId + 1;
      if (isNew || isGap) this.#known.clear();
      return [...(isNew || isGap ? [CLEARED] : []), ...this.#eventsOf(data)];
    });
  }

  /** Notes that the engine died, and its cache with it. */
  lose(): WireEvent[] {
    if (this.#known.size === 0) return [];
    this.#known.clear();
    return [CLEARED];
  }

  #eventsOf(data: KvCacheEventData): WireEvent[] {
    if (data.type === 'removed') {
      const hashes = data.blockHashes.filter((hash) => this.#known.delete(hash));
      return hashes.length === 0 ? [] : [{ type: 'BlockRemoved', block_hashes: hashes, medium: MEDIUM }];
    }
    if (data.type !== 'stored') return [];
    const { parentHash, blocks } = data;
    if (parentHash !== null && !this.#known.has(parentHash)) return [];
    for (const { blockHash } of blocks) this.#known.add(blockHash);
    return [this.#stored(parentHash, blocks)];
  }

  /** @param blocks at least one; all of one sequence, each after the one before */
  #stored(parentHash: number | null, blocks: readonly StoredBlock[]): WireEvent {
    const { tokens, loraId, cacheSalt } = blocks[0]!;
    const name = loraId === null ? null : this.#names.adapterName(loraId);
    const extraKeys = blocks.map((_, index) => {
      const isFirst = parentHash === null && index === 0;
      const keys = [
        ...(name === null ? [] : [name]),
        ...(isFirst && cacheSalt !== 0n ? [saltText(cacheSalt)] : []),
      ];
      return keys.length === 0 ? null : keys;
    });
    return {
      type: 'BlockStored',
      block_hashes: blocks.map(({ blockHash }) => blockHash),
      parent_block_hash: parentHash,
      token_ids: blocks.flatMap((block) => block.tokens),
      block_size: tokens.length,
      lora_id: loraId === null ? null : Number(loraId),
      medium: MEDIUM,
      lora_name: name,
      ...(extraKeys.every((keys) => keys === null) ? {} : { extra_keys: extraKeys }),
    };
  }
}

/** A batch as msgpack has it: [time in seconds, events, rank of data parallelism]. */
export function batchOf(events: readonly WireEvent[], format: WireFormat, nowMs: number): unknown[] {
  return [nowMs / 1000, format === 'map' ? events : events.map((event) => Object.values(event)), 0];
}

/** The text of a salt: routers compare salts, and read nothing in them. */
export function saltText(salt: bigint): string {
  return `skein-${salt.toString(16).padStart(16, '0')}`;
}
