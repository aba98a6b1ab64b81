import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { RopeTable } from '../batch/rope-table.js';
import type { LlmRequest } from '../request/llm-request.js';

/** State of a sequence in the draft model's cache. Places are those of the sequence. */
interface DraftCache {
  /** Place of the first token in the cache. */
  base: number;
  /** Place up to which the sequence's tokens have keys and values in the cache. */
  length: number;
  /**
   * Draft tokens after these that have been written too; which of them were right shows when the next draft
   * begins.
   */
  ahead: number[];
  ropeRow: number;
}

/**
 * Tracks which tokens of which sequences are in the draft model's KV cache. It need not follow the sequences step by
 * step:
 *
 *   cache      g7 g8 | d9 d10          the draft d9 d10 d11 has been drawn: d11 was not fed to the draft model
 *   sequence   g7 g8   g9 g10' g11     d9 was right, d10 was not: the next round writes g10' over d10, and g11
 *
 * A sequence that is new to it, or had no draft for some steps, is only further behind. The cache's content is compared
 * with the sequence itself, so it need not know which tokens were accepted.
 */
export class DraftCaches {
  readonly kvCache: KvCacheManager;
  readonly rope: RopeTable;
  readonly #caches = new Map<bigint, DraftCache>();

  constructor(kvCache: KvCacheManager, rope: RopeTable) {
    this.kvCache = kvCache;
    this.rope = rope;
  }

  /** Number of sequences that have blocks. */
  get size(): number {
    return this.#caches.size;
  }

  /**
   * Keeps the right part of the sequence's cache, gives back the blocks after it, and returns its length. The
   * newest token is never part of it, since its logits are needed.
   */
  settle(request: LlmRequest): number {
    const { tokens, numTokens } = request;
    const cache = this.find(request);
    if (cache === undefined) return 0;
    let length = Math.min(cache.length, numTokens - 1);
    for (const token of cache.length < numTokens ? cache.ahead : []) {
      if (length === numTokens - 1 || tokens[length] !== token) break;
      length++;
    }
    cache.length = length;
    cache.ahead.length = 0;
    this.trim(request, cache);
    return length;
  }

  /**
   * Number of the sequence's tokens that are not in the cache, the newest one too; wrong tokens of a draft count as
   * read.
   */
  unread({ requestId, numTokens }: LlmRequest): number {
    return numTokens - Math.min(this.#caches.get(requestId)?.length ?? 0, numTokens - 1);
  }

  /** Takes blocks for the places before `length`. Returns false and changes nothing if there is no room. */
  reserve(request: LlmRequest, length: number): boolean {
    return this.take(request, length, 0);
  }

  /** Place up to which all have been written: those of the sequence and of the draft after them. */
  written({ requestId }: LlmRequest): number {
    const { length, ahead } = this.#cache(requestId);
    return length + ahead.length;
  }

  /** Place of the first token in the cache. */
  baseOf({ requestId }: LlmRequest): number {
    return this.#cache(requestId).base;
  }

  ropeRow({ requestId }: LlmRequest): number {
    return this.#cache(requestId).ropeRow;
  }

  /** Notes that the places up to `end` have been written, those from numTokens on with tokens of the draft. */
  noteWritten({ requestId, tokens, numTokens }: LlmRequest, end: number): void {
    const cache = this.#cache(requestId);
    cache.length = Math.min(end, numTokens);
    for (let place = cache.length + cache.ahead.length; place < end; place++)
      cache.ahead.push(tokens[place]!);
  }

  /** Gives back the blocks held for the request, if any. */
  release({ requestId }: Pick<LlmRequest, 'requestId'>): void {
    const cache = this.#caches.get(requestId);
    if (cache === undefined) return;
    this.#caches.delete(requestId);
    this.rope.release(cache.ropeRow);
    this.kvCache.freeSequence(requestId);
  }

  releaseAll(): void {
    for (const requestId of [...this.#caches.keys()]) this.release({ requestId });
  }

  protected find({ requestId }: LlmRequest): DraftCache | undefined {
    return this.#caches.get(requestId);
  }

  /** As `reserve`; a new cache begins at the place `base`. */
  protected take({ requestId, finalLength }: LlmRequest, length: number, base: number): boolean {
    const cache = this.#caches.get(requestId);
    if (cache !== undefined) return this.kvCache.growSequence(requestId, length - cache.base);
    if (!this.kvCache.addSequence(requestId, length - base)) return false;
    this.#caches.set(requestId, { base, length: base, ahead: [], ropeRow: this.rope.assign(finalLength) });
    return true;
  }

  /** Gives back the blocks after what is in the cache. */
  protected trim({ requestId }: LlmRequest, { base, length }: DraftCache): void {
    const kept = Math.max(1, length - base);
    if (this.kvCache.sequenceLength(requestId) > kept) this.kvCache.trimSequence(requestId, kept);
  }

  #cache(requestId: bigint): DraftCache {
    const cache = this.#caches.get(requestId);
    if (cache === undefined) throw new Error(`Request ${requestId} has nothing in the draft model's cache.`);
    return cache;
  }
}
