import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { LlmRequest } from './llm-request.js';

/**
 * True if a step of the request can be computed again, which happens where the masks of its guide come late. States that the step has
 * changed stand in the way, unless all its rows are taken for a draft: then the executor keeps the states in front of them.
 */
export function mayRepeat(
  request: LlmRequest,
  kvCache: Pick<KvCacheManager, 'states' | 'longestDraft'>,
): boolean {
  return kvCache.states === null || rowsToRepeat(request, kvCache) > 0;
}

/**
 * Number of rows of the request's steps, besides those of its draft, that are logged as a draft so that they
 * can be computed again.
 */
export function rowsToRepeat(
  { spec, sequences }: LlmRequest,
  { states, longestDraft }: Pick<KvCacheManager, 'states' | 'longestDraft'>,
): 0 | 1 {
  const isAlone = sequences.length === 1 && spec.beams === null;
  return spec.guide !== null && states !== null && longestDraft > 0 && isAlone ? 1 : 0;
}
