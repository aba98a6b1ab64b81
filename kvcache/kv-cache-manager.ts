import type { KvCapacity } from '../scheduler/tokens/types.js';
import { type AdoptedBlocks, adoptBlocks, dropAdopted } from './adopted-blocks.js';
import type { AttentionWindow } from './attention-window.js';
import { BeamTables } from './beam-tables.js';
import { BlockCache } from './block-cache.js';
import type { PromptBlocks } from './block-hashes.js';
import { BLOCK_CACHED, BLOCK_FREE, BLOCK_SHARED } from './block-owners.js';
import type { KvCacheEvent } from './cache-events.js';
import { findInconsistency } from './integrity.js';
import {
  DEFAULT_STATE_INTERVAL,
  type KvCacheOptions,
  type KvCacheSizes,
  resolveSizes,
  type StateSizes,
} from './kv-cache-options.js';
import { KvCacheCounters, type KvCacheStats } from './kv-cache-stats.js';
import { type BlockCopies, MemoryChanges } from './memory-changes.js';
import { PrefixSharing, type ReuseCounts, type SharedPrefix } from './prefix-sharing.js';
import type { PrefixMatch, PrefixNode } from './prefix-tree.js';
import { SequenceStates, type StepStates } from './sequence-states.js';
import { SequenceTables } from './sequence-tables.js';
import { UnwrittenBlocks } from './unwritten-blocks.js';

export { DEFAULT_TOKENS_PER_BLOCK, type KvCacheOptions } from './kv-cache-options.js';
export type { KvCacheStats } from './kv-cache-stats.js';
export type { ReuseCounts, SharedPrefix } from './prefix-sharing.js';

/** A cached block. */
export interface CachedBlock {
  block: number;
  /** Slot of the state snapshot at the end of the match; -1: there is none. */
  state: number;
  hash: number;
  /** Hash of the block in front of it; null: there is none. */
  parentHash: number | null;
  /** Retention priority. */
  priority: number;
}

const NOTHING_SHARED: ReuseCounts = { reusedTokens: 0, reusedBlocks: 0, missedBlocks: 0 };

/**
 * Keeps the block tables of all requests: which blocks hold which keys and values. It hands out numbers only; the
 * memory is the executor's.
 *
 * A request has a block table from its first context chunk, which takes the blocks of the whole prompt, until it ends
 * or is paused. Every call that needs blocks either succeeds completely or changes nothing and returns false.
 *
 * With block reuse, full blocks whose every slot has been written are kept in a prefix tree (`store`), and a new
 * sequence begins with those of its prompt:
 *
 *   tokensPerBlock 4, prompt    a b c d | e f g h | i j k l
 *   cached                      a b c d - e f g h - i j x y
 *   table of the new sequence   shared    shared    its own, with i j copied: positions 10 and on are computed
 *
 *   SequenceTables   who holds what, and how tables grow        BlockCache      free, held and cached blocks
 *   PrefixSharing    what sequences find and leave in the tree  MemoryChanges   what the executor copies and zeroes
 *   SequenceStates   where layers keep the states of sequences, and snapshots of them
 */
export class KvCacheManager implements KvCacheSizes {
  readonly tokensPerBlock: number;
  readonly numBlocks: number;
  readonly maxSeqLen: number;
  readonly window: AttentionWindow | null;
  readonly maxBlocksPerSequence: number;
  readonly numSecondaryBlocks: number;
  readonly enableBlockReuse: boolean;
  /** Most tokens of a sequence's draft: where the model has states, an executor logs this many rows. */
  readonly longestDraft: number;
  readonly #cache: BlockCache;
  readonly #changes: MemoryChanges;
  readonly #counters = new KvCacheCounters();
  readonly #sequences: SequenceTables;
  readonly #sharing: PrefixSharing;
  /** What steps do with the states of sequences; null: the model has none. */
  readonly states: StepStates | null;
  readonly #states: SequenceStates | null;
  /** null: none are listed. */
  readonly #unwritten: UnwrittenBlocks | null = null;

  /** @throws if the options make no sense or if one sequence of maxSeqLen does not fit */
  constructor(options: KvCacheOptions) {
    const sizes = resolveSizes(options);
    this.numBlocks = sizes.numBlocks;
    this.tokensPerBlock = sizes.tokensPerBlock;
    this.maxSeqLen = sizes.maxSeqLen;
    this.window = sizes.window;
    this.maxBlocksPerSequence = sizes.maxBlocksPerSequence;
    const { states, enableBlockReuse = false } = options;
    const onSnapshot = (node: PrefixNode) => {
      this.#cache.noteState(node.hash, node.state >= 0);
      if (node.state >= 0) this.#unwritten?.add(node);
    };
    this.#states = states === undefined ? null : newStates(states, this.tokensPerBlock, onSnapshot);
    this.states = this.#states;
    this.longestDraft = states === undefined ? Number.POSITIVE_INFINITY : (states.draftRows ?? 0);
    // A prompt cannot use a block without the states at its end.
    this.enableBlockReuse = enableBlockReuse && states?.numSnapshots !== 0;
    this.numSecondaryBlocks = sizes.numSecondaryBlocks;
    this.#changes = new MemoryChanges(this.numBlocks);
    if (options.listsUnwritten && this.enableBlockReuse) this.#unwritten = new UnwrittenBlocks();
    const onInserted = (node: PrefixNode) => this.#unwritten?.add(node);
    const onRemoved = (node: PrefixNode) => {
      this.#states?.removeNode(node);
      this.#unwritten?.remove(node);
    };
    const caching = { ...options, tokensPerBlock: this.tokensPerBlock, onInserted, onRemoved };
    this.#cache = new BlockCache(caching, this.#changes);
    this.#sequences = new SequenceTables(sizes, this.#cache, this.#changes, this.#counters);
    const sharing = { ...options, tokensPerBlock: this.tokensPerBlock };
    this.#sharing = new PrefixSharing(sharing, this.#cache, this.#changes, this.#counters);
  }

  /** Number of blocks available: free ones, and cached ones that no sequence holds. */
  get freeBlocks(): number {
    return this.#cache.availableBlocks;
  }

  /** State that the capacity scheduler needs. */
  capacity(): KvCapacity {
    return {
      freeBlocks: this.#cache.availableBlocks,
      tokensPerBlock: this.tokensPerBlock,
      maxAttentionWindow: this.cachedTokensPerSequence,
      ...(this.#states && { freeStateSlots: this.#states.freeSlots }),
      ...(this.enableBlockReuse ? { creditOfPauses: () => this.#sequences.creditOfPauses() } : {}),
    };
  }

  /** Most tokens of one sequence that the cache has room for, as the schedulers count; Infinity without a window. */
  get cachedTokensPerSequence(): number {
    return this.window?.cachedTokens ?? Number.POSITIVE_INFINITY;
  }

  /**
   * True if a sequence that ends with this length may share blocks with others. Past the window it would write over
   * blocks that others hold or find, so then it neither finds nor leaves any.
   */
  canShare(finalLength: number): boolean {
    return this.enableBlockReuse && (this.window === null || finalLength <= this.#longestUnbroken());
  }

  hasSequence(requestId: bigint): boolean {
    return this.#sequences.has(requestId);
  }

  /** Number of blocks that the request holds; 0 for a request that has no sequence. */
  blocksHeld(requestId: bigint): number {
    return this.#sequences.blocksHeld(requestId);
  }

  /** Number of tokens that the request's table covers. */
  sequenceLength(requestId: bigint): number {
    return this.#sequences.table(requestId).length;
  }

  /** Blocks that the request's sequence found in the cache when it was added. */
  reuseOf(requestId: bigint): ReuseCounts {
    const { reusedTokens, reusedBlocks, missedBlocks } = this.#sequences.sequence(requestId);
    return { reusedTokens, reusedBlocks, missedBlocks };
  }

  /**
   * Names the first full block of the prompt that is not in the cache, or null if all are. Two prompts with the same
   * name would compute the same block. Where the model has states, cached blocks without states at their end
   * count as missing: the first prompt that computes them again leaves a snapshot there.
   */
  firstMissingBlock(shared: SharedPrefix, promptLength: number): number | null {
    if (!this.enableBlockReuse) return null;
    const { hash, last } = this.#cache.tree.firstMissing(shared, shared.tokens, promptLength);
    return this.#states !== null && last !== null && last.state < 0 ? -1 - last.hash : hash;
  }

  /** A number that changes with the cache: while it stays the same, so do the answers of firstMissingBlock. */
  get cacheVersion(): number {
    return this.#cache.version + (this.#states?.version ?? 0);
  }

  canAddSequence(promptLength: number): boolean {
    return this.#sequences.blocksOf(promptLength) <= this.#cache.availableBlocks;
  }

  /**
   * Takes the blocks of the whole prompt, in one table for each of `beamWidth` sequences. If the sequence may share,
   * blocks found in the cache are among them (see `reuseOf`). The sequences share the full blocks; each has a last
   * block of its own, which its tokens will be written into. The prompt is written into the first table;
   * `forkSequences` brings it to the others. Returns false and changes nothing if there is no room.
   */
  addSequence(requestId: bigint, promptLength: number, prefix?: SharedPrefix, beamWidth = 1): boolean {
    if (this.#sequences.has(requestId)) {
      throw new Error(`Request ${requestId} already has a sequence in the KV cache.`);
    }
    this.#sequences.checkLength(requestId, promptLength);
    const shared = this.enableBlockReuse && prefix !== undefined ? prefix : null;
    if (shared) this.#checkUnbroken(requestId, promptLength);
    if (this.#states !== null && this.#states.freeSlots < beamWidth) return false;
    const cached = this.#sharing.find(shared, promptLength);
    const match = this.#states === null ? cached : withStates(cached);
    const numBlocks = this.#sequences.blocksOf(promptLength);
    const heldTokens = Math.min(promptLength, this.cachedTokensPerSequence);
    const fullBlocks = Math.floor(heldTokens / this.tokensPerBlock);
    const allBlocks = numBlocks + BeamTables.numBeside(beamWidth, fullBlocks, numBlocks);
    if (allBlocks - this.#sharing.numHeld(match) > this.#cache.availableBlocks) return false;
    const first = this.#sequences.createTable();
    this.#sharing.take(first, match, allBlocks);
    this.#states?.add(requestId, {
      width: beamWidth,
      promptLength,
      isShared: shared !== null,
      from: match.nodes.at(-1) ?? null,
      foundTokens: match.nodes.length * this.tokensPerBlock,
      cachedTokens: cached.nodes.length * this.tokensPerBlock,
      forksAt: shared?.forksAt ?? 0,
    });
    const found = shared ? this.#sharing.count(match, promptLength) : NOTHING_SHARED;
    this.#sequences.add(requestId, {
      tables: this.#sequences.createTables(first, promptLength, beamWidth, fullBlocks),
      promptLength,
      shared: shared && withoutTokens(shared),
      ...found,
    });
    return true;
  }

  /**
   * Keeps the full blocks of the sequence's first `numWritten` tokens for others. The keys and values of all of them
   * must have been written and found finite. If the tree already has a block with the same content, the sequence takes
   * that one and gives up its own. Tokens that beams have generated are not kept: it is not known yet which
   * of them will stay.
   */
  store(requestId: bigint, tokens: Int32Array, numWritten: number): void {
    const { tables, shared, promptLength } = this.#sequences.sequence(requestId);
    if (shared === null) return;
    const { length } = tables.first;
    if (numWritten > length || numWritten > tokens.length) {
      throw new RangeError(
        `Request ${requestId}: ${numWritten} tokens are to be kept; its table covers ${length} and ` +
          `${tokens.length} tokens are given.`,
      );
    }
    const kept = tables.width > 1 ? Math.min(numWritten, promptLength) : numWritten;
    const nodes = this.#sharing.store({ tables, shared, promptLength }, tokens, kept);
    this.#states?.keep(requestId, nodes);
  }

  /**
   * The cached full blocks of the first `limit` tokens, from the start on as far as there are any. Those from numBlocks
   * on are in the secondary pool. Their content is what it should be once the copies have been drained and made.
   */
  cachedBlocks(prefix: SharedPrefix, limit: number): Int32Array {
    const { nodes } = this.#cache.tree.match(prefix, prefix.tokens, limit);
    return Int32Array.from(nodes, ({ block }) => block);
  }

  /**
   * Like cachedBlocks, but only the blocks that a prompt can continue after: where the model has states, up
   * to the last one with a snapshot at its end. state: its slot; -1: the model has no states.
   */
  usableBlocks(prefix: SharedPrefix, limit: number): { blocks: Int32Array; state: number } {
    const cached = this.#cache.tree.match(prefix, prefix.tokens, limit);
    const { nodes } = this.#states === null ? cached : withStates(cached);
    return { blocks: Int32Array.from(nodes, ({ block }) => block), state: nodes.at(-1)?.state ?? -1 };
  }

  /**
   * Keeps states computed elsewhere for the prompt's first `length` tokens as a snapshot: if their block is
   * cached and has none, and a slot can be had, `write` writes them there and says whether they are to be
   * kept.
   */
  adoptState(prefix: SharedPrefix, length: number, write: (slot: number) => boolean): void {
    const { nodes } = this.#cache.tree.match(prefix, prefix.tokens, length);
    const last = nodes.at(-1);
    if (last !== undefined && nodes.length * this.tokensPerBlock === length) this.#states?.adopt(last, write);
  }

  /**
   * Makes room among the cached blocks for full blocks of the prompt that were computed elsewhere, `count` of them from
   * number `first` on; see adoptBlocks. The caller drains and makes the copies, and then writes the content, before the
   * next call.
   */
  adoptBlocks(prefix: SharedPrefix, first: number, count: number): AdoptedBlocks {
    const { tokensPerBlock } = this;
    if (!this.enableBlockReuse) return { first, blocks: new Int32Array(0) };
    return adoptBlocks(this.#cache, prefix, prefix.tokens, { first, count, tokensPerBlock });
  }

  /** Takes back what adoptBlocks has made room for, as the next call after it. */
  dropAdopted(prefix: SharedPrefix, adopted: AdoptedBlocks): void {
    dropAdopted(this.#cache, prefix, prefix.tokens, adopted, this.tokensPerBlock);
  }

  /** Number of blocks of which takeUnwritten has something to tell. */
  get numUnwritten(): number {
    return this.#unwritten?.size ?? 0;
  }

  /**
   * Takes the oldest of the cached blocks that may have to be written to a disk, each after the blocks in front of it; null: there is
   * none. Those that are not wanted are not asked for again, unless they get a snapshot of states. The content is what it should be once
   * all copies have been drained and made.
   */
  takeUnwritten(isWanted: (block: CachedBlock) => boolean): (CachedBlock & { chain: PromptBlocks }) | null {
    const node = this.#unwritten?.take((one) => isWanted(cachedBlock(one))) ?? null;
    return node && { ...cachedBlock(node), chain: this.#cache.tree.chainOf(node) };
  }

  /**
   * Hashes of the full blocks of the prompt, its last token left out: those that are cached, and those after
   * them as far as `isElsewhere` knows them. usable: number of the cached ones that a prompt can continue
   * after.
   */
  chainBeyond(
    prefix: SharedPrefix,
    promptLength: number,
    isElsewhere: (hash: number) => boolean,
  ): { hashes: number[]; cached: number; usable: number } {
    const { nodes, beyond } = this.#cache.tree.chainBeyond(
      prefix,
      prefix.tokens,
      promptLength - 1,
      isElsewhere,
    );
    const cached = nodes.length;
    const usable = this.#states === null ? cached : nodes.findLastIndex(({ state }) => state >= 0) + 1;
    return { hashes: [...nodes.map(({ hash }) => hash), ...beyond], cached, usable };
  }

  /** Number of blocks in a table that covers `length` tokens, or the part of them that a window keeps. */
  blocksOf(length: number): number {
    return this.#sequences.blocksOf(length);
  }

  /** The full blocks of the sequence's first `length` tokens. */
  fullBlocks(requestId: bigint, length: number): Int32Array {
    return this.#sequences.table(requestId).blocks.slice(0, Math.floor(length / this.tokensPerBlock));
  }

  canGrowSequence(requestId: bigint, length: number): boolean {
    return this.#sequences.hasRoomToGrow(this.#sequences.sequence(requestId), length);
  }

  /**
   * Makes the table cover `length` tokens, never fewer than before. Returns false and changes nothing if there is no
   * room.
   */
  growSequence(requestId: bigint, length: number): boolean {
    const sequence = this.#sequences.sequence(requestId);
    this.#sequences.checkLength(requestId, length);
    if (sequence.shared) this.#checkUnbroken(requestId, length);
    if (!this.#sequences.hasRoomToGrow(sequence, length)) return false;
    this.#sequences.grow(sequence, length);
    return true;
  }

  /** Gives back the blocks and snapshots beyond `length` tokens: those of a draft that was rejected. */
  trimSequence(requestId: bigint, length: number): void {
    this.#sequences.trim(requestId, length);
    this.#states?.settle(requestId, length);
  }

  /**
   * Sequence i of the request goes on from its former sequence parents[i]; sequences from which none goes on are given
   * back. Full blocks are shared, the last one is copied if it is not full: see BeamTables. Never takes a block.
   */
  forkSequences(requestId: bigint, parents: readonly number[]): void {
    this.#sequences.fork(requestId, parents);
    this.#states?.fork(requestId, parents);
  }

  /** Gives back the blocks that the request holds and returns how many there were; 0 if it has no sequence. */
  freeSequence(requestId: bigint): number {
    this.#states?.release(requestId);
    return this.#sequences.remove(requestId);
  }

  /**
   * Forgets every block that others could find, those in the secondary pool included, and returns how many there were.
   * Sequences keep the blocks they hold, but lookups no longer find them, and they are not kept when the
   * sequences end. Sequences added from now on compute their prompts and share them as before.
   */
  dropReusable(): number {
    this.#sequences.stopSharing();
    this.#states?.stopSharing();
    return this.#cache.dropAll();
  }

  /**
   * Writes the slots (block * tokensPerBlock + offset) of positions [start, end) into target from `offset` on. @param
   * index number of the sequence among the request's
   */
  writeSlots(
    requestId: bigint,
    start: number,
    end: number,
    target: Int32Array,
    offset: number,
    index = 0,
  ): void {
    this.#sequences.writeSlots(requestId, start, end, target, offset, index);
  }

  /**
   * Writes the block table of one of the request's sequences into target[offset, offset + maxBlocks); unused entries
   * become 0. Returns the number of used ones.
   */
  writeBlockTable(
    requestId: bigint,
    target: Int32Array,
    offset: number,
    maxBlocks: number,
    index = 0,
  ): number {
    return this.#sequences.writeBlocks(requestId, target, offset, maxBlocks, index);
  }

  /**
   * Writes the blocks handed out since the last call into target, each once, and returns how many. The executor
   * zeroes them before it writes. An array of numBlocks always suffices.
   */
  drainNewBlocks(target: Int32Array): number {
    return this.#changes.drainNewBlocks(target);
  }

  /**
   * Like drainNewBlocks, but only for those new blocks that a step is the first to write to: `slots` are all slots that
   * the step writes. The others stay listed until a step writes to them.
   */
  drainWrittenBlocks(slots: Int32Array, target: Int32Array): number {
    return this.#changes.drainWrittenBlocks(slots, this.tokensPerBlock, target);
  }

  /**
   * The copies of whole blocks for partial reuse and swapping since the last call, or null. The executor makes them in
   * this order before it zeroes or writes anything; block numbers from numBlocks on belong to the secondary pool.
   */
  drainCopies(): BlockCopies | null {
    return this.#changes.drainCopies();
  }

  /** Sets the time in milliseconds, for priorities that end. */
  advanceClock(nowMs: number): void {
    this.#cache.advanceClock(nowMs);
  }

  /** Events of cached blocks since the last call. */
  drainEvents(): KvCacheEvent[] {
    return this.#cache.events.drain();
  }

  /**
   * Holder of each block of the primary pool: the row that `rowOf` gives for the request, or BLOCK_FREE, BLOCK_CACHED,
   * BLOCK_SHARED. O(blocks).
   */
  blockOwners(rowOf: (requestId: bigint) => number): Int32Array {
    const { nodes, referenceCounts } = this.#cache.inspect();
    const owners = Int32Array.from(referenceCounts, (_, block) =>
      nodes[block] === undefined ? BLOCK_FREE : BLOCK_CACHED,
    );
    for (const { requestId, blocks, further } of this.#sequences.inspect()) {
      const row = rowOf(requestId);
      for (const table of [blocks, ...further]) {
        for (const block of table) owners[block] = referenceCounts[block]! > 1 ? BLOCK_SHARED : row;
      }
    }
    return owners;
  }

  stats(): KvCacheStats {
    const { numBlocks: maxBlocks, tokensPerBlock } = this;
    const { availableBlocks: freeBlocks, secondary } = this.#cache;
    const states = this.#states?.stats() ?? null;
    return this.#counters.stats({ maxBlocks, freeBlocks, tokensPerBlock, secondary, states });
  }

  /**
   * Throws an error whose sentence names the first inconsistency. O(blocks): called after each iteration in tests,
   * otherwise when idle.
   */
  checkIntegrity(): void {
    const { tokensPerBlock } = this;
    const sequences = this.#sequences.inspect();
    const { roots } = this.#cache.tree;
    const maxBlocks = this.maxBlocksPerSequence;
    const wrong = findInconsistency({
      tokensPerBlock,
      maxBlocks,
      sequences,
      roots,
      ...this.#cache.inspect(),
    });
    const requests = sequences.map(({ requestId }) => requestId);
    const inconsistency = wrong ?? this.#states?.findInconsistency(requests) ?? null;
    if (inconsistency !== null) throw new Error(`The KV cache is inconsistent: ${inconsistency}`);
  }

  /** Length of the longest sequence that writes over nothing of its own. */
  #longestUnbroken(): number {
    return this.maxBlocksPerSequence * this.tokensPerBlock;
  }

  #checkUnbroken(requestId: bigint, length: number): void {
    if (this.window === null || length <= this.#longestUnbroken()) return;
    throw new RangeError(
      `Request ${requestId} shares its blocks, but ${length} tokens are more than the ${this.#longestUnbroken()} ` +
        'that fit into its window: it would write over what others may need.',
    );
  }
}

function cachedBlock({ block, state, hash, parent, priority }: PrefixNode): CachedBlock {
  const parentHash = parent === null || parent.parent === null ? null : parent.hash;
  return { block, state, hash, parentHash, priority };
}

/** The part of a match that ends with a state snapshot. */
function withStates({ nodes }: PrefixMatch): PrefixMatch {
  const last = nodes.findLastIndex(({ state }) => state >= 0);
  return { nodes: nodes.slice(0, last + 1), partial: null, partialLength: 0 };
}

function newStates(
  { interval = DEFAULT_STATE_INTERVAL, ...sizes }: StateSizes,
  tokensPerBlock: number,
  onSnapshot: (node: PrefixNode) => void,
): SequenceStates {
  const whole = Math.ceil(interval / tokensPerBlock) * tokensPerBlock;
  return new SequenceStates({ ...sizes, tokensPerBlock, interval: whole, onSnapshot });
}

/** What is kept of a sequence's key: not its tokens, which grow. */
function withoutTokens({
  salt,
  loraId = null,
  retention,
  spans,
}: SharedPrefix): Omit<SharedPrefix, 'tokens'> {
  return { salt, loraId, ...(retention ? { retention } : {}), ...(spans ? { spans } : {}) };
}
