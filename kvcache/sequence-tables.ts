import type { BeamBlocks } from './beam-blocks.js';
import type { BlockCache } from './block-cache.js';
import { BlockTable } from './block-table.js';
import type { KvCacheSizes } from './kv-cache-options.js';
import type { KvCacheCounters } from './kv-cache-stats.js';
import type { MemoryChanges } from './memory-changes.js';
import type { ReuseCounts, SharedPrefix } from './prefix-sharing.js';

export interface Sequence extends ReuseCounts {
  /** Of the first beam. */
  table: BlockTable;
  beams: BeamBlocks;
  promptLength: number;
  /** null: it neither finds nor leaves anything in the cache. */
  shared: Omit<SharedPrefix, 'tokens'> | null;
}

/** The requests that have a sequence, and how their block tables grow, shrink and are written out. */
export class SequenceTables {
  readonly #sizes: KvCacheSizes;
  readonly #cache: BlockCache;
  readonly #changes: MemoryChanges;
  readonly #counters: KvCacheCounters;
  readonly #sequences = new Map<bigint, Sequence>();

  constructor(sizes: KvCacheSizes, cache: BlockCache, changes: MemoryChanges, counters: KvCacheCounters) {
    this.#sizes = sizes;
    this.#cache = cache;
    this.#changes = changes;
    this.#counters = counters;
  }

  has(requestId: bigint): boolean {
    return this.#sequences.has(requestId);
  }

  add(requestId: bigint, sequence: Sequence): void {
    this.#sequences.set(requestId, sequence);
  }

  /** Throws if the request has none. */
  sequence(requestId: bigint): Sequence {
    const sequence = this.#sequences.get(requestId);
    if (!sequence) throw new Error(`Request ${requestId} has no sequence in the KV cache.`);
    return sequence;
  }

  /** Throws if the request has none. */
  table(requestId: bigint): BlockTable {
    return this.sequence(requestId).table;
  }

  createTable(): BlockTable {
    const { tokensPerBlock, maxBlocksPerSequence, window } = this.#sizes;
    return new BlockTable(tokensPerBlock, maxBlocksPerSequence, window);
  }

  /** 0 for a request that has no sequence. */
  blocksHeld(requestId: bigint): number {
    const sequence = this.#sequences.get(requestId);
    return sequence ? sequence.table.numBlocks + sequence.beams.numBlocks : 0;
  }

  /** Blocks of a table that covers `length` tokens, or the window's part of them. */
  blocksOf(length: number): number {
    const { tokensPerBlock, maxBlocksPerSequence } = this.#sizes;
    return Math.min(Math.ceil(length / tokensPerBlock), maxBlocksPerSequence);
  }

  /** Throws where no sequence can have this length. */
  checkLength(requestId: bigint, length: number): void {
    const { maxSeqLen } = this.#sizes;
    if (Number.isInteger(length) && length >= 1 && length <= maxSeqLen) return;
    throw new RangeError(
      `Request ${requestId}: a sequence of ${length} tokens is asked for; 1 to maxSeqLen = ${maxSeqLen} can be.`,
    );
  }

  hasRoomToGrow({ table, beams }: Sequence, length: number): boolean {
    const needed = this.blocksOf(length);
    const missing = needed - table.numBlocks + beams.numBlocksBeside(needed) - beams.numBlocks;
    return missing <= this.#cache.availableBlocks;
  }

  /** Makes the tables cover `length` tokens, never fewer than before; the caller has seen that there is room. */
  grow({ table, beams }: Pick<Sequence, 'table' | 'beams'>, length: number): void {
    const missing = this.blocksOf(length) - table.numBlocks;
    for (let count = 0; count < missing; count += 1) {
      table.append(this.#takeNew());
    }
    beams.grow(table.numBlocks, () => this.#takeNew());
    table.setLength(Math.max(table.length, length));
  }

  /** Gives back the blocks beyond `length` tokens. */
  trim(requestId: bigint, length: number): void {
    const { table, beams } = this.sequence(requestId);
    if (!Number.isInteger(length) || length < 1 || length > table.length) {
      throw new RangeError(
        `Request ${requestId}: its table is to keep ${length} of ${table.length} tokens; 1 to ${table.length} can be.`,
      );
    }
    const kept = this.blocksOf(length);
    beams.shrink(kept, (block) => this.#cache.release(block));
    while (table.numBlocks > kept) this.#cache.release(table.removeLast());
    table.setLength(length);
  }

  /** Gives back what the request holds and returns how many blocks that were; 0 if it has no sequence. */
  remove(requestId: bigint): number {
    const sequence = this.#sequences.get(requestId);
    if (!sequence) return 0;
    // Tail first: the head of a sequence is what another one may share, so it should be taken again last.
    const held = this.blocksHeld(requestId);
    this.#sequences.delete(requestId);
    sequence.beams.shrink(0, (block) => this.#cache.release(block));
    const { blocks } = sequence.table;
    for (let index = blocks.length - 1; index >= 0; index -= 1) this.#cache.release(blocks[index]!);
    return held;
  }

  /** For each request in turn: the blocks that nobody holds any more once it and those asked before are paused. */
  creditOfPauses(): (requestId: bigint) => number {
    const released = new Map<number, number>();
    return (requestId) => {
      let credit = 0;
      for (const block of this.#blocksOfAllBeams(requestId)) {
        const count = (released.get(block) ?? 0) + 1;
        released.set(block, count);
        if (count === this.#cache.references(block)) credit += 1;
      }
      return credit;
    };
  }

  /** See KvCacheManager.writeSlots. */
  writeSlots(requestId: bigint, start: number, end: number, target: Int32Array, offset: number): void {
    const table = this.table(requestId);
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
  writeBlocks(requestId: bigint, target: Int32Array, offset: number, maxBlocks: number): number {
    const { blocks } = this.table(requestId);
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

  /** For the integrity check. */
  inspect(): { requestId: bigint; length: number; blocks: Int32Array; beams: BeamBlocks }[] {
    return Array.from(this.#sequences, ([requestId, { table, beams }]) => ({
      requestId,
      length: table.length,
      blocks: table.blocks,
      beams,
    }));
  }

  #takeNew(): number {
    const block = this.#cache.take();
    this.#changes.zero(block);
    this.#counters.addNew(1);
    return block;
  }

  #blocksOfAllBeams(requestId: bigint): number[] {
    const sequence = this.#sequences.get(requestId);
    return sequence ? [...sequence.table.blocks, ...sequence.beams.branches.flat()] : [];
  }
}
