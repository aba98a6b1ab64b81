import { option, says } from '../base/named-text.js';
import { retell } from '../base/skein-error.js';
import { BeamTables, type BlockSource } from './beam-tables.js';
import type { BlockCache } from './block-cache.js';
import { BlockTable } from './block-table.js';
import type { KvCacheSizes } from './kv-cache-options.js';
import type { KvCacheCounters } from './kv-cache-stats.js';
import type { MemoryChanges } from './memory-changes.js';
import type { ReuseCounts, SharedPrefix } from './prefix-sharing.js';

export interface Sequence extends ReuseCounts {
  tables: BeamTables;
  promptLength: number;
  /** null: the sequence neither finds nor leaves anything in the cache. */
  shared: Omit<SharedPrefix, 'tokens'> | null;
}

/** Requests that have sequences. Grows, shrinks and writes out their block tables. */
export class SequenceTables {
  readonly #sizes: KvCacheSizes;
  readonly #cache: BlockCache;
  readonly #source: BlockSource;
  readonly #sequences = new Map<bigint, Sequence>();

  constructor(sizes: KvCacheSizes, cache: BlockCache, changes: MemoryChanges, counters: KvCacheCounters) {
    this.#sizes = sizes;
    this.#cache = cache;
    this.#source = {
      take: () => {
        const block = cache.take();
        changes.zero(block);
        counters.addNew(1);
        return block;
      },
      share: (block) => cache.share(block),
      release: (block) => cache.release(block),
      copy: (source, target) => changes.copy(source, target),
    };
  }

  has(requestId: bigint): boolean {
    return this.#sequences.has(requestId);
  }

  add(requestId: bigint, sequence: Sequence): void {
    this.#sequences.set(requestId, sequence);
  }

  /** @throws if the request has no sequence */
  sequence(requestId: bigint): Sequence {
    const sequence = this.#sequences.get(requestId);
    if (!sequence) throw new Error(`Request ${requestId} has no sequence in the KV cache.`);
    return sequence;
  }

  /** The table of one of the request's sequences; the first one by default. @throws if the request has none */
  table(requestId: bigint, index = 0): BlockTable {
    const table = this.sequence(requestId).tables.all[index];
    if (!table) throw new Error(`Request ${requestId} has no table ${index} in the KV cache.`);
    return table;
  }

  createTable(): BlockTable {
    const { tokensPerBlock, maxBlocksPerSequence, window } = this.#sizes;
    return new BlockTable(tokensPerBlock, maxBlocksPerSequence, window);
  }

  /**
   * Creates the tables of a request whose first table already has the blocks found in the cache. Each of `width` tables
   * gets room for the whole prompt; they share their first `numShared` blocks. The caller has seen that there is room.
   */
  createTables(first: BlockTable, promptLength: number, width: number, numShared: number): BeamTables {
    const needed = this.blocksOf(promptLength);
    while (first.numBlocks < needed) first.append(this.#source.take());
    first.setLength(promptLength);
    return new BeamTables(first, width, numShared, this.#source);
  }

  /** Number of blocks that the request holds, each counted once; 0 for a request that has no sequence. */
  blocksHeld(requestId: bigint): number {
    return this.#sequences.get(requestId)?.tables.numBlocks ?? 0;
  }

  /** Number of blocks in a table that covers `length` tokens, or the part of them that a window keeps. */
  blocksOf(length: number): number {
    const { tokensPerBlock, maxBlocksPerSequence } = this.#sizes;
    return Math.min(Math.ceil(length / tokensPerBlock), maxBlocksPerSequence);
  }

  /** @throws if no sequence can have this length */
  checkLength(requestId: bigint, length: number): void {
    const { maxSeqLen } = this.#sizes;
    if (Number.isInteger(length) && length >= 1 && length <= maxSeqLen) return;
    throw retell(
      new RangeError(),
      says`Request ${requestId}: a sequence of ${length} tokens is asked for; 1 to ${option('maxSeqLen')} = ${maxSeqLen} can be.`,
    );
  }

  hasRoomToGrow({ tables }: Sequence, length: number): boolean {
    const missing = this.blocksOf(length) - tables.first.numBlocks;
    return missing * tables.width <= this.#cache.availableBlocks;
  }

  /** Makes the tables cover `length` tokens, never fewer than before; the caller has seen that there is room. */
  grow({ tables }: Sequence, length: number): void {
    tables.grow(this.blocksOf(length), length);
  }

  /** Gives back the blocks beyond `length` tokens. */
  trim(requestId: bigint, length: number): void {
    const { tables } = this.sequence(requestId);
    const { length: covered } = tables.first;
    if (!Number.isInteger(length) || length < 1 || length > covered) {
      throw new RangeError(
        `Request ${requestId}: its table is to keep ${length} of ${covered} tokens; 1 to ${covered} can be.`,
      );
    }
    tables.trim(this.blocksOf(length), length);
  }

  /** See KvCacheManager.forkSequences. */
  fork(requestId: bigint, parents: readonly number[]): void {
    const { tables } = this.sequence(requestId);
    const { width } = tables;
    const isParent = (parent: number) => Number.isInteger(parent) && parent >= 0 && parent < width;
    if (parents.length < 1 || parents.length > width || !parents.every(isParent)) {
      throw new RangeError(
        `Request ${requestId}: its ${width} sequences are to go on from [${parents.join(', ')}]; 1 to ${width} of them, ` +
          `each from 0 to ${width - 1}, can be.`,
      );
    }
    const { length } = tables.first;
    tables.fork(parents, length % this.#sizes.tokensPerBlock !== 0);
  }

  /** Gives back the blocks that the request holds and returns how many there were; 0 if it has no sequence. */
  remove(requestId: bigint): number {
    const sequence = this.#sequences.get(requestId);
    if (!sequence) return 0;
    const held = sequence.tables.numBlocks;
    this.#sequences.delete(requestId);
    sequence.tables.releaseAll();
    return held;
  }

  /** From now on, lookups do not find the blocks of present sequences, and none of these blocks is kept. */
  stopSharing(): void {
    for (const sequence of this.#sequences.values()) sequence.shared = null;
  }

  /**
   * Returns a function that is called for one request after the other: the number of blocks without holders
   * once this request and those before are paused.
   */
  creditOfPauses(): (requestId: bigint) => number {
    const released = new Map<number, number>();
    return (requestId) => {
      let credit = 0;
      for (const { blocks } of this.#sequences.get(requestId)?.tables.all ?? []) {
        for (const block of blocks) {
          const count = (released.get(block) ?? 0) + 1;
          released.set(block, count);
          if (count === this.#cache.references(block)) credit += 1;
        }
      }
      return credit;
    };
  }

  /** See KvCacheManager.writeSlots. */
  writeSlots(
    requestId: bigint,
    start: number,
    end: number,
    target: Int32Array,
    offset: number,
    index = 0,
  ): void {
    const table = this.table(requestId, index);
    if (start < 0 || start > end || end > table.length) {
      throw new RangeError(
        `Request ${requestId}: slots of positions [${start}, ${end}) are asked for; its table covers ${table.length}.`,
      );
    }
    if (offset + (end - start) > target.length) {
      throw new RangeError(
        `Request ${requestId}: ${end - start} slots from index ${offset} do not fit into an array of ${target.length}.`,
      );
    }
    table.writeSlots(start, end, target, offset);
  }

  /** See KvCacheManager.writeBlockTable. */
  writeBlocks(requestId: bigint, target: Int32Array, offset: number, maxBlocks: number, index = 0): number {
    const { blocks } = this.table(requestId, index);
    if (blocks.length > maxBlocks || offset + maxBlocks > target.length) {
      throw new RangeError(
        `Request ${requestId}: a table of ${blocks.length} blocks does not fit into ${maxBlocks} entries from index ` +
          `${offset} of an array of ${target.length}.`,
      );
    }
    target.set(blocks, offset);
    target.fill(0, offset + blocks.length, offset + maxBlocks);
    return blocks.length;
  }

  /** State that the integrity check reads. */
  inspect(): { requestId: bigint; length: number; blocks: Int32Array; further: Int32Array[] }[] {
    return Array.from(this.#sequences, ([requestId, { tables }]) => ({
      requestId,
      length: tables.first.length,
      blocks: tables.first.blocks,
      further: tables.all.slice(1).map(({ blocks }) => blocks),
    }));
  }
}
