import type { KvCapacity } from '../scheduler/types.js';
import { BlockCache } from './block-cache.js';
import { BlockTable } from './block-table.js';
import type { KvCacheEvent, StoredBlock } from './cache-events.js';
import { findInconsistency } from './integrity.js';
import { NewBlocks } from './new-blocks.js';
import type { PrefixMatch, PrefixNode } from './prefix-tree.js';
import { checkRetention, type Retention, retentionAt } from './retention.js';

export const DEFAULT_TOKENS_PER_BLOCK = 32;
const GREATEST_SLOT = 2 ** 31 - 1;

export interface KvCacheOptions {
  numBlocks: number;
  /** Default 32. Executors and their kernels ask for powers of two; the numbers here do not depend on it. */
  tokensPerBlock?: number;
  /** Longest sequence, prompt and generated tokens together. */
  maxSeqLen: number;
  /** Full blocks are kept after their sequence has ended, and shared by sequences that begin alike. Default false. */
  enableBlockReuse?: boolean;
  /** A block of which only the first tokens are common is reused too; default true. */
  enablePartialReuse?: boolean;
  /** Partial reuse copies a block that others need; default true. Without it only unused leaves are taken over. */
  copyOnPartialReuse?: boolean;
  /** Events kept until they are drained; default 0: none. */
  maxEvents?: number;
}

/** What a sequence may share with others. */
export interface SharedPrefix {
  /** The prompt; may be longer than promptLength. */
  tokens: Int32Array;
  /** Sequences of different salts share nothing; 0n where there is none. */
  salt: bigint;
  retention?: Retention;
}

/**
 * What the sequence found in the cache. The last prompt token is always computed, so of a prompt of n tokens
 * floor((n - 1) / tokensPerBlock) full blocks can be found: each of them counts as reused or as missed.
 */
export interface ReuseCounts {
  /** Tokens whose keys and values were there, those of a part of a block included. */
  reusedTokens: number;
  /** Full blocks shared. */
  reusedBlocks: number;
  missedBlocks: number;
}

export interface KvCacheStats {
  maxBlocks: number;
  freeBlocks: number;
  usedBlocks: number;
  tokensPerBlock: number;
  /** Blocks put into tables since the start. */
  allocTotalBlocks: number;
  /** Those of them that were free or evicted: neither shared nor taken over with their content. */
  allocNewBlocks: number;
  /** Sums of the sequences' ReuseCounts since the start. */
  reusedBlocks: number;
  missedBlocks: number;
  /** reusedBlocks / (reusedBlocks + missedBlocks), 0 before the first. */
  cacheHitRate: number;
}

interface Sequence extends ReuseCounts {
  table: BlockTable;
  promptLength: number;
  /** null: it neither finds nor leaves anything in the cache. */
  shared: Omit<SharedPrefix, 'tokens'> | null;
}

const NOTHING_FOUND: PrefixMatch = { nodes: [], partial: null, partialLength: 0 };

/**
 * Which blocks hold which request's keys and values. It hands out numbers only; the memory is the executor's.
 *
 * A request has a block table from its first context chunk, which takes the blocks of the whole prompt, until it
 * ends or is paused. Every call that needs blocks either succeeds whole or changes nothing and returns false.
 *
 * With block reuse, full blocks whose every slot has been written are kept in a prefix tree (`store`), and a new
 * sequence begins with those of its prompt:
 *
 *   tokensPerBlock 4, prompt    a b c d | e f g h | i j k l
 *   cached                      a b c d - e f g h - i j x y
 *   table of the new sequence   shared    shared    its own, with i j copied: positions 10 and on are computed
 */
export class KvCacheManager {
  readonly tokensPerBlock: number;
  readonly numBlocks: number;
  readonly maxSeqLen: number;
  /** Blocks of the longest sequence. */
  readonly maxBlocksPerSequence: number;
  readonly enableBlockReuse: boolean;
  readonly #enablePartialReuse: boolean;
  readonly #copyOnPartialReuse: boolean;
  readonly #cache: BlockCache;
  readonly #sequences = new Map<bigint, Sequence>();
  readonly #newBlocks: NewBlocks;
  #copySources: number[] = [];
  #copyTargets: number[] = [];
  #allocTotalBlocks = 0;
  #allocNewBlocks = 0;
  #reusedBlocks = 0;
  #missedBlocks = 0;

  /** Throws if the options make no sense or if one sequence of maxSeqLen does not fit. */
  constructor(options: KvCacheOptions) {
    const { numBlocks, maxSeqLen, tokensPerBlock = DEFAULT_TOKENS_PER_BLOCK } = options;
    checkAtLeastOne('tokensPerBlock', tokensPerBlock);
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
    this.enableBlockReuse = options.enableBlockReuse ?? false;
    this.#enablePartialReuse = options.enablePartialReuse ?? true;
    this.#copyOnPartialReuse = options.copyOnPartialReuse ?? true;
    this.#cache = new BlockCache(numBlocks, tokensPerBlock, options.maxEvents ?? 0);
    this.#newBlocks = new NewBlocks(numBlocks);
  }

  /** Blocks that can be had: free ones, and cached ones that no sequence holds. */
  get freeBlocks(): number {
    return this.#cache.availableBlocks;
  }

  /** What the capacity scheduler needs to know. */
  capacity(): KvCapacity {
    return {
      freeBlocks: this.#cache.availableBlocks,
      tokensPerBlock: this.tokensPerBlock,
      maxAttentionWindow: Number.POSITIVE_INFINITY,
      ...(this.enableBlockReuse ? { creditOfPauses: () => this.#creditOfPauses() } : {}),
    };
  }

  hasSequence(requestId: bigint): boolean {
    return this.#sequences.has(requestId);
  }

  /** 0 for a request that has no sequence. */
  blocksHeld(requestId: bigint): number {
    return this.#sequences.get(requestId)?.table.numBlocks ?? 0;
  }

  /** Tokens that the request's table covers. */
  sequenceLength(requestId: bigint): number {
    return this.#table(requestId).length;
  }

  /** What the request's sequence found in the cache when it was added. */
  reuseOf(requestId: bigint): ReuseCounts {
    const { reusedTokens, reusedBlocks, missedBlocks } = this.#sequence(requestId);
    return { reusedTokens, reusedBlocks, missedBlocks };
  }

  /**
   * Names the first full block of the prompt that is not in the cache, or null if all are. Two prompts with the same
   * name would compute the same block.
   */
  firstMissingBlock(shared: SharedPrefix, promptLength: number): number | null {
    if (!this.enableBlockReuse) return null;
    return this.#cache.tree.firstMissing(shared.salt, shared.tokens, promptLength);
  }

  /** As long as it stays the same, so do the answers of firstMissingBlock. */
  get cacheVersion(): number {
    return this.#cache.version;
  }

  canAddSequence(promptLength: number): boolean {
    return Math.ceil(promptLength / this.tokensPerBlock) <= this.#cache.availableBlocks;
  }

  /**
   * Takes the blocks of the whole prompt, those in the cache included where the sequence shares (see `reuseOf`).
   * False, and nothing changed, if there is no room.
   */
  addSequence(requestId: bigint, promptLength: number, shared?: SharedPrefix): boolean {
    if (this.#sequences.has(requestId)) {
      throw new Error(`Request ${requestId} already has a sequence in the KV cache.`);
    }
    this.#checkLength(requestId, promptLength);
    const shares = this.enableBlockReuse && shared !== undefined ? shared : null;
    if (shares?.retention) checkRetention(shares.retention);
    const match = shares ? this.#find(shares, promptLength) : NOTHING_FOUND;
    const held = match.nodes.reduce((sum, { block }) => sum + (this.#cache.isHeld(block) ? 1 : 0), 0);
    if (Math.ceil(promptLength / this.tokensPerBlock) - held > this.#cache.availableBlocks) return false;
    const table = new BlockTable(this.tokensPerBlock, this.maxBlocksPerSequence);
    const reusedTokens = this.#takeFound(table, match);
    this.#growTable(requestId, table, promptLength);
    const reusedBlocks = match.nodes.length;
    const missedBlocks = shares ? Math.floor((promptLength - 1) / this.tokensPerBlock) - reusedBlocks : 0;
    this.#reusedBlocks += reusedBlocks;
    this.#missedBlocks += missedBlocks;
    this.#sequences.set(requestId, {
      table,
      promptLength,
      shared: shares && { salt: shares.salt, ...(shares.retention ? { retention: shares.retention } : {}) },
      reusedTokens,
      reusedBlocks,
      missedBlocks,
    });
    return true;
  }

  /**
   * Keeps the full blocks of the sequence's first `numWritten` tokens for others. The keys and values of all of them
   * must have been written and found finite. A block that the tree has already is given up for the one in the tree,
   * which has the same content.
   */
  store(requestId: bigint, tokens: Int32Array, numWritten: number): void {
    const { table, shared, promptLength } = this.#sequence(requestId);
    if (shared === null) return;
    if (numWritten > table.length || numWritten > tokens.length) {
      throw new RangeError(
        `Request ${requestId}: ${numWritten} tokens are to be kept; its table covers ${table.length} and ` +
          `${tokens.length} tokens are given.`,
      );
    }
    const { tree, events } = this.#cache;
    const size = this.tokensPerBlock;
    const stored: StoredBlock[] = [];
    let parentHash: number | null = null;
    let node = tree.root(shared.salt);
    for (let start = 0; start + size <= numWritten; start += size) {
      const block = table.blocks[start / size]!;
      const retention = shared.retention ? retentionAt(shared.retention, start, promptLength) : null;
      const known = tree.child(node, tokens, start);
      if (known) {
        if (known.block !== block) this.#exchange(table, start / size, known);
        if (retention) this.#cache.retain(known, retention);
        node = known;
        continue;
      }
      if (stored.length === 0) parentHash = node.parent === null ? null : node.hash;
      this.#newBlocks.remove(block);
      node = this.#cache.insert(node, tokens, start, block, retention);
      if (!events.isOn) continue;
      const { hash: blockHash, priority } = node;
      stored.push({ blockHash, tokens: Array.from(node.tokens), loraId: null, cacheLevel: 0, priority });
    }
    if (stored.length > 0) events.add({ type: 'stored', parentHash, blocks: stored });
  }

  canGrowSequence(requestId: bigint, length: number): boolean {
    const table = this.#table(requestId);
    return Math.ceil(length / this.tokensPerBlock) - table.numBlocks <= this.#cache.availableBlocks;
  }

  /** Makes the table cover `length` tokens, never fewer than before. False, and nothing changed, if there is no room. */
  growSequence(requestId: bigint, length: number): boolean {
    return this.#growTable(requestId, this.#table(requestId), length);
  }

  /** Gives back the blocks beyond `length` tokens: those of a draft that was rejected. */
  trimSequence(requestId: bigint, length: number): void {
    const table = this.#table(requestId);
    if (!Number.isInteger(length) || length < 1 || length > table.length) {
      throw new RangeError(
        `Request ${requestId}: its table is to keep ${length} of ${table.length} tokens; 1 to ${table.length} can be.`,
      );
    }
    const kept = Math.ceil(length / this.tokensPerBlock);
    while (table.numBlocks > kept) this.#cache.release(table.removeLast());
    table.setLength(length);
  }

  /** Gives back what the request holds and returns how many blocks that were; 0 if it has no sequence. */
  freeSequence(requestId: bigint): number {
    const sequence = this.#sequences.get(requestId);
    if (!sequence) return 0;
    this.#sequences.delete(requestId);
    // Tail first: the head of a sequence is what another one may share, so it should be taken again last.
    const { blocks } = sequence.table;
    for (let index = blocks.length - 1; index >= 0; index -= 1) this.#cache.release(blocks[index]!);
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

  /**
   * The copies of whole blocks that partial reuse asks for since the last call, or null. The executor makes them in
   * order before it zeroes or writes anything.
   */
  drainCopies(): { source: Int32Array; target: Int32Array } | null {
    if (this.#copySources.length === 0) return null;
    const copies = { source: Int32Array.from(this.#copySources), target: Int32Array.from(this.#copyTargets) };
    this.#copySources = [];
    this.#copyTargets = [];
    return copies;
  }

  /** Tells the time in milliseconds, for priorities that end. */
  advanceClock(nowMs: number): void {
    this.#cache.advanceClock(nowMs);
  }

  /** What happened to cached blocks since the last call. */
  drainEvents(): KvCacheEvent[] {
    return this.#cache.events.drain();
  }

  stats(): KvCacheStats {
    const lookups = this.#reusedBlocks + this.#missedBlocks;
    return {
      maxBlocks: this.numBlocks,
      freeBlocks: this.#cache.availableBlocks,
      usedBlocks: this.numBlocks - this.#cache.availableBlocks,
      tokensPerBlock: this.tokensPerBlock,
      allocTotalBlocks: this.#allocTotalBlocks,
      allocNewBlocks: this.#allocNewBlocks,
      reusedBlocks: this.#reusedBlocks,
      missedBlocks: this.#missedBlocks,
      cacheHitRate: lookups === 0 ? 0 : this.#reusedBlocks / lookups,
    };
  }

  /** Throws a sentence naming the first inconsistency. O(blocks): after each iteration in tests, when idle otherwise. */
  checkIntegrity(): void {
    const sequences = Array.from(this.#sequences, ([requestId, { table }]) => ({
      requestId,
      length: table.length,
      blocks: table.blocks,
    }));
    const { tokensPerBlock } = this;
    const roots = this.#cache.tree.roots;
    const wrong = findInconsistency({ tokensPerBlock, sequences, roots, ...this.#cache.inspect() });
    if (wrong !== null) throw new Error(`The KV cache is inconsistent: ${wrong}`);
  }

  #sequence(requestId: bigint): Sequence {
    const sequence = this.#sequences.get(requestId);
    if (!sequence) throw new Error(`Request ${requestId} has no sequence in the KV cache.`);
    return sequence;
  }

  #table(requestId: bigint): BlockTable {
    return this.#sequence(requestId).table;
  }

  /** What the cache has of the prompt but its last token, as far as the options allow to use it. */
  #find({ salt, tokens }: SharedPrefix, promptLength: number): PrefixMatch {
    if (tokens.length < promptLength) {
      throw new RangeError(`A prompt of ${promptLength} tokens is to be found; ${tokens.length} are given.`);
    }
    const match = this.#cache.tree.match(salt, tokens, promptLength - 1);
    const { partial } = match;
    const usable =
      partial !== null &&
      this.#enablePartialReuse &&
      (this.#copyOnPartialReuse || this.#cache.isClaimable(partial));
    return usable ? match : { nodes: match.nodes, partial: null, partialLength: 0 };
  }

  /** Puts what was found into the empty table; returns how many tokens that is. */
  #takeFound(table: BlockTable, { nodes, partial, partialLength }: PrefixMatch): number {
    for (const node of nodes) {
      this.#cache.acquire(node);
      table.append(node.block);
    }
    this.#allocTotalBlocks += nodes.length;
    if (partial !== null) table.append(this.#takePartial(partial));
    return nodes.length * this.tokensPerBlock + partialLength;
  }

  /** A block of the sequence's own with the content of `partial`: the very block if it is an unused leaf, or a copy. */
  #takePartial(partial: PrefixNode): number {
    this.#allocTotalBlocks += 1;
    if (this.#cache.isClaimable(partial)) return this.#cache.claim(partial);
    const block = this.#cache.take();
    this.#allocNewBlocks += 1;
    // Zeroing would come after the copy. Were the source evicted for it: memory changes only when the step runs.
    this.#newBlocks.remove(block);
    this.#copySources.push(partial.block);
    this.#copyTargets.push(block);
    return block;
  }

  #exchange(table: BlockTable, index: number, node: PrefixNode): void {
    const own = table.blocks[index]!;
    this.#cache.acquire(node);
    table.replace(index, node.block);
    this.#cache.release(own);
  }

  /** For each request in turn: the blocks that nobody holds any more once it and those asked before are paused. */
  #creditOfPauses(): (requestId: bigint) => number {
    const released = new Map<number, number>();
    return (requestId) => {
      let credit = 0;
      for (const block of this.#sequences.get(requestId)?.table.blocks ?? []) {
        const count = (released.get(block) ?? 0) + 1;
        released.set(block, count);
        if (count === this.#cache.references(block)) credit += 1;
      }
      return credit;
    };
  }

  #checkLength(requestId: bigint, length: number): void {
    if (Number.isInteger(length) && length >= 1 && length <= this.maxSeqLen) return;
    throw new RangeError(
      `Request ${requestId}: a sequence of ${length} tokens is asked for; 1 to maxSeqLen = ${this.maxSeqLen} can be.`,
    );
  }

  #growTable(requestId: bigint, table: BlockTable, length: number): boolean {
    this.#checkLength(requestId, length);
    const missing = Math.ceil(length / this.tokensPerBlock) - table.numBlocks;
    if (missing > this.#cache.availableBlocks) return false;
    for (let count = 0; count < missing; count += 1) {
      const block = this.#cache.take();
      table.append(block);
      this.#newBlocks.add(block);
      this.#allocTotalBlocks += 1;
      this.#allocNewBlocks += 1;
    }
    table.setLength(Math.max(table.length, length));
    return true;
  }
}

function checkAtLeastOne(name: string, value: number): void {
  if (!Number.isInteger(value) || value < 1) {
    throw new RangeError(`${name} is ${value}; a whole number of at least 1 is expected.`);
  }
}
