import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { RopeTable } from '../batch/rope-table.js';
import type { LlmRequest } from '../request/llm-request.js';
import { DraftCaches } from './draft-caches.js';
import type { HiddenRows } from './hidden-rows.js';

/**
 * The caches of a model's head, which reads each token beside the row of the place before it. A cache begins with the first token that has
 * such a row, and starts again where rows were forgotten before the head had read them. What the head has written of a draft was made of
 * its own rows, so it is written again once the model has the right ones.
 */
export class HeadCaches extends DraftCaches {
  readonly #rows: HiddenRows;

  constructor(kvCache: KvCacheManager, rope: RopeTable, rows: HiddenRows) {
    super(kvCache, rope);
    this.#rows = rows;
  }

  override settle(request: LlmRequest): number {
    const first = this.#firstToken(request);
    const cache = this.find(request);
    if (cache === undefined) return first;
    if (cache.length < first || cache.base > first) {
      this.release(request);
      return first;
    }
    cache.length = Math.min(cache.length, request.numTokens - 1);
    cache.ahead.length = 0;
    this.trim(request, cache);
    return cache.length;
  }

  override unread(request: LlmRequest): number {
    const length = Math.min(this.find(request)?.length ?? 0, request.numTokens - 1);
    return request.numTokens - Math.max(length, this.#firstToken(request));
  }

  override reserve(request: LlmRequest, length: number): boolean {
    return this.take(request, length, this.#firstToken(request));
  }

  /** Place of the first token that the head can read, beside the row before it. */
  #firstToken(request: LlmRequest): number {
    return (this.#rows.firstOf(request) ?? request.numTokens - 2) + 1;
  }
}
