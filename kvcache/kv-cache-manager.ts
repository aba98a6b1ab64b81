import type { KvCapacity } from '../scheduler/types.js';
import { BlockPool } from './block-pool.js';
import { BlockTable } from './block-table.js';
import { findInconsistency } from './integrity.js';
import { NewBlocks } from './new-blocks.js';

export const DEFAULT_TOKENS_PER_BLOCK = 32;
const GREATEST_SLOT = 2 ** 31 - 1;

export interface KvCacheOptions {
  numBlocks: number;
  /** A power of two, at least 8; default 32. */
  tokensPerBlock?: number;
  /** Longest sequence, prompt and generated tokens together. */
  maxSeqLen: number;
}

export interface KvCacheStats {
  maxBlocks: number;
  freeBlocks: number;
  usedBlocks: number;
  tokensPerBlock: number;
  /** Blocks put into tables since the start. */
  allocTotalBlocks: number;
  /** Those of them that came out of the free list. */
  allocNewBlocks: number;
}

/**
 * Which blocks hold which request's keys and values. It hands out numbers only; the memory is the executor's.
 *
 * A request has a block table from its first context chunk, which takes the blocks of the whole prompt, until it
 * ends or is paused. Every call that needs blocks either succeeds whole or changes nothing and returns false.
 */
export class KvCacheManager {
  readonly tokensPerBlock: number;
  readonly numBlocks: number;
  readonly maxSeqLen: number;
  /** Blocks of the longest sequence. */
  readonly maxBlocksPerSequence: number;
  readonly #pool: BlockPool;
  readonly #tables = new Map<bigint, BlockTable>();
  readonly #newBlocks: NewBlocks;
  #allocTotalBlocks = 0;
  #allocNewBlocks = 0;

  /** Throws if the options make no sense or if one sequence of maxSeqLen does not fit. */
  constructor(options: KvCacheOptions) {
    const { numBlocks, maxSeqLen, tokensPerBlock = DEFAULT_TOKENS_PER_BLOCK } = options;
    checkTokensPerBlock(tokensPerBlock);
    checkAtLeastOne('numBlocks', numBlocks);
    checkAtLeastOne('maxSeqLen', maxSeqLen);
    if (numBlocks * tokensPerBlock > GREATEST_SLOT) {
      throw new RangeError(
        `${numBlocks} blocks of ${tokensPerBlock} tokens are more than ${GREATEST_SLOT} slots, ` +
          'the most that a 32-bit slot number can name.',
      );
    }
    this.maxBlocksPerSequence = Math.ceil(maxSeqLen / tokensPerBlock);
    if (numBlocks < this.maxBlocksPerSequence) {
      throw new RangeError(
        `The KV cache has ${numBlocks} blocks of ${tokensPerBlock} tokens, but one sequence of maxSeqLen = ` +
          `${maxSeqLen} needs ${this.maxBlocksPerSequence}. Give it more memory or lower maxSeqLen.`,
      );
    }
    this.numBlocks = numBlocks;
    this.tokensPerBlock = tokensPerBlock;
    this.maxSeqLen = maxSeqLen;
    this.#pool = new BlockPool(numBlocks);
    this.#newBlocks = new NewBlocks(numBlocks);
  }

  get freeBlocks(): number {
    return this.#pool.freeBlocks;
  }

  /** What the capacity scheduler needs to know. */
  capacity(): KvCapacity {
    return {
      freeBlocks: this.#pool.freeBlocks,
      tokensPerBlock: this.tokensPerBlock,
      maxAttentionWindow: Number.POSITIVE_INFINITY,
    };
  }

  hasSequence(requestId: bigint): boolean {
    return this.#tables.has(requestId);
  }

  /** 0 for a request that has no sequence. */
  blocksHeld(requestId: bigint): number {
    return this.#tables.get(requestId)?.numBlocks ?? 0;
  }

  /** Tokens that the request's table covers. */
  sequenceLength(requestId: bigint): number {
    return this.#table(requestId).length;
  }

  canAddSequence(promptLength: number): boolean {
    return Math.ceil(promptLength / this.tokensPerBlock) <= this.#pool.freeBlocks;
  }

  /** Takes the blocks of the whole prompt. False, and nothing changed, if there is no room. */
  addSequence(requestId: bigint, promptLength: number): boolean {
    if (this.#tables.has(requestId)) {
      throw new Error(`Request ${requestId} already has a sequence in the KV cache.`);
    }
    const table = new BlockTable(this.tokensPerBlock, this.maxBlocksPerSequence);
    if (!this.#growTable(requestId, table, promptLength)) return false;
    this.#tables.set(requestId, table);
    return true;
  }

  canGrowSequence(requestId: bigint, length: number): boolean {
    const table = this.#table(requestId);
    return Math.ceil(length / this.tokensPerBlock) - table.numBlocks <= this.#pool.freeBlocks;
  }

  /** Makes the table cover `length` tokens, never fewer than before. False, and nothing changed, if there is no room. */
  growSequence(requestId: bigint, length: number): boolean {
    return this.#growTable(requestId, this.#table(requestId), length);
  }

  /** Gives back what the request holds and returns how many blocks that were; 0 if it has no sequence. */
  freeSequence(requestId: bigint): number {
    const table = this.#tables.get(requestId);
    if (!table) return 0;
    this.#tables.delete(requestId);
    // Tail first: the head of a sequence is what another one may share, so it should be taken again last.
    const blocks = table.blocks;
    for (let index = blocks.length - 1; index >= 0; index -= 1) this.#pool.release(blocks[index]!);
    return blocks.length;
  }

  /** Writes the slots (block * tokensPerBlock + offset) of positions [start, end) into target from `offset` on. */
  writeSlots(requestId: bigint, start: number, end: number, target: Int32Array, offset: number): void {
    const table = this.#table(requestId);
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

  /** Writes the block table into target[offset, offset + maxBlocks); unused entries become 0. Returns the used ones. */
  writeBlockTable(requestId: bigint, target: Int32Array, offset: number, maxBlocks: number): number {
    const blocks = this.#table(requestId).blocks;
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

  /**
   * Writes the blocks handed out since the last call into target, each once, and returns how many. The executor
   * zeroes them before it writes. An array of numBlocks always suffices.
   */
  drainNewBlocks(target: Int32Array): number {
    return this.#newBlocks.drain(target);
  }

  stats(): KvCacheStats {
    return {
      maxBlocks: this.numBlocks,
      freeBlocks: this.#pool.freeBlocks,
      usedBlocks: this.numBlocks - this.#pool.freeBlocks,
      tokensPerBlock: this.tokensPerBlock,
      allocTotalBlocks: this.#allocTotalBlocks,
      allocNewBlocks: this.#allocNewBlocks,
    };
  }

  /** Throws a sentence naming the first inconsistency. O(blocks): after each iteration in tests, when idle otherwise. */
  checkIntegrity(): void {
    const { free, referenceCounts } = this.#pool.inspect();
    const sequences = Array.from(this.#tables, ([requestId, { length, blocks }]) => ({
      requestId,
      length,
      blocks,
    }));
    const wrong = findInconsistency({
      tokensPerBlock: this.tokensPerBlock,
      free,
      referenceCounts,
      sequences,
    });
    if (wrong !== null) throw new Error(`The KV cache is inconsistent: ${wrong}`);
  }

  #table(requestId: bigint): BlockTable {
    const table = this.#tables.get(requestId);
    if (!table) throw new Error(`Request ${requestId} has no sequence in the KV cache.`);
    return table;
  }

  #growTable(requestId: bigint, table: BlockTable, length: number): boolean {
    if (!Number.isInteger(length) || length < 1 || length > this.maxSeqLen) {
      throw new RangeError(
        `Request ${requestId}: a sequence of ${length} tokens is asked for; 1 to maxSeqLen = ${this.maxSeqLen} can be.`,
      );
    }
    const missing = Math.ceil(length / this.tokensPerBlock) - table.numBlocks;
    if (missing > this.#pool.freeBlocks) return false;
    for (let count = 0; count < missing; count += 1) {
      const block = this.#pool.take();
      table.append(block);
      this.#newBlocks.add(block);
      this.#allocTotalBlocks += 1;
      this.#allocNewBlocks += 1;
    }
    table.setLength(Math.max(table.length, length));
    return true;
  }
}

function checkTokensPerBlock(tokensPerBlock: number): void {
  const isPowerOfTwo = Number.isInteger(Math.log2(tokensPerBlock));
  if (!isPowerOfTwo || tokensPerBlock < 8) {
    throw new RangeError(`tokensPerBlock is ${tokensPerBlock}; a power of two of at least 8 is expected.`);
  }
}

function checkAtLeastOne(name: string, value: number): void {
  if (!Number.isInteger(value) || value < 1) {
    throw new RangeError(`${name} is ${value}; a whole number of at least 1 is expected.`);
  }
}
