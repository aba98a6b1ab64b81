import type { IterationStats, ModelType } from '../../callbacks/gpt-manager-options.js';
import type { KvCacheStats } from '../../kvcache/kv-cache-manager.js';
import { formatTimestamp } from './loop-statistics.js';

/**
 * The statistics string in its richer form (optionalParams.statsFormat 'IterationStats'). The blocks are those of this
 * iteration's step, as in the other form; times are in milliseconds. V1 has staticBatchingStats instead of
 * inflightBatchingStats. specDecodingStats is null in an iteration without drafts.
 */
export function iterationStatsJson(
  modelType: ModelType,
  stats: IterationStats,
  blocks: KvCacheStats,
  now: Date,
): string {
  return JSON.stringify({
    timestamp: formatTimestamp(now),
    iter: stats.iteration,
    iterLatencyMS: stats.iterationMs,
    newActiveRequestsQueueLatencyMS: stats.newRequestsQueueMs,
    numNewActiveRequests: stats.newRequests,
    numActiveRequests: stats.activeRequests,
    numQueuedRequests: stats.queuedRequests,
    numCompletedRequests: stats.completedRequests,
    maxNumActiveRequests: stats.maxRequests,
    kvCacheStats: {
      maxNumBlocks: blocks.maxBlocks,
      freeNumBlocks: blocks.freeBlocks,
      usedNumBlocks: blocks.usedBlocks,
      tokensPerBlock: blocks.tokensPerBlock,
      allocTotalBlocks: blocks.allocTotalBlocks,
      allocNewBlocks: blocks.allocNewBlocks,
      reusedBlocks: blocks.reusedBlocks,
      missedBlocks: blocks.missedBlocks,
      cacheHitRate: blocks.cacheHitRate,
      secondaryMaxNumBlocks: blocks.secondaryMaxBlocks,
      secondaryUsedNumBlocks: blocks.secondaryUsedBlocks,
      swappedOutBlocks: blocks.swappedOutBlocks,
      swappedInBlocks: blocks.swappedInBlocks,
    },
    ...(blocks.states !== null && { stateCacheStats: blocks.states }),
    ...(blocks.disk !== null && { diskCacheStats: blocks.disk }),
    ...(stats.expertReadBytes > 0 && { expertReadBytes: stats.expertReadBytes }),
    ...(modelType === 'V1'
      ? { staticBatchingStats: staticBatching(stats) }
      : { inflightBatchingStats: inflightBatching(stats) }),
    specDecodingStats: stats.drafts > 0 ? specDecoding(stats) : null,
  });
}

function inflightBatching(stats: IterationStats) {
  const { contextRequests, generationRequests } = stats;
  return {
    numScheduledRequests: stats.scheduledRequests,
    numContextRequests: contextRequests,
    numGenRequests: generationRequests,
    numPausedRequests: stats.pausedRequests,
    numCtxTokens: stats.contextTokens,
    microBatchId: stats.microBatchId,
    avgNumDecodedTokensPerIter:
      generationRequests > 0 ? 1 + stats.acceptedDraftTokens / generationRequests : 0,
  };
}

/** acceptanceLength: average number of tokens that a request with a draft got in its step. */
function specDecoding({ drafts, draftedTokens, acceptedDraftTokens }: IterationStats) {
  return {
    numDraftTokens: draftedTokens,
    numAcceptedTokens: acceptedDraftTokens,
    numRequestsWithDraftTokens: drafts,
    acceptanceLength: 1 + acceptedDraftTokens / drafts,
  };
}

function staticBatching(stats: IterationStats) {
  return {
    numScheduledRequests: stats.scheduledRequests,
    numContextRequests: stats.contextRequests,
    numCtxTokens: stats.contextTokens,
    numGenTokens: stats.generatedTokens,
    emptyGenSlots: stats.emptyGenerationSlots,
  };
}
