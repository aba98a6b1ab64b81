import type { IterationStats, ModelType } from '../../callbacks/gpt-manager-options.js';
import type { KvCacheStats } from '../../kvcache/kv-cache-manager.js';

/** Counts of the loop within one iteration. */
export interface IterationCounts {
  activeRequests: number;
  newRequests: number;
  newRequestsQueueMs: number;
  queuedRequests: number;
  contextRequests: number;
  generationRequests: number;
  pausedRequests: number;
  completedRequests: number;
  contextTokens: number;
  /** Work that the iteration's time depends on besides contextTokens: see IterationWork. */
  contextPairs: number;
  /** Context tokens whose logits were computed to be returned. */
  returnedRows: number;
  generationRows: number;
  queriedTokens: number;
  reusedTokens: number;
  generatedTokens: number;
  drafts: number;
  draftedTokens: number;
  acceptedDraftTokens: number;
  acceptedByPosition: number[];
  emptyGenerationSlots: number;
  replayMismatches: number;
  executorMs: number;
  waitedMs: number;
  expertReadBytes: number;
}

/** Statistics of an engine that has not iterated yet, or whose iterations are not known here. @param blocks of its cache */
export function statsWithoutIterations(
  maxNumSequences: number,
  blocks: Pick<KvCacheStats, 'maxBlocks' | 'freeBlocks' | 'usedBlocks' | 'tokensPerBlock'>,
): IterationStats {
  const cache = {
    ...blocks,
    allocTotalBlocks: 0,
    allocNewBlocks: 0,
    reusedBlocks: 0,
    missedBlocks: 0,
    cacheHitRate: 0,
    secondaryMaxBlocks: 0,
    secondaryUsedBlocks: 0,
    swappedOutBlocks: 0,
    swappedInBlocks: 0,
    states: null,
    disk: null,
  };
  const stats = new LoopStatistics(maxNumSequences).finishIteration(noCounts(), cache, 0, 0, 0);
  return { ...stats, iteration: 0 };
}

export function noCounts(): IterationCounts {
  return {
    activeRequests: 0,
    newRequests: 0,
    newRequestsQueueMs: 0,
    queuedRequests: 0,
    contextRequests: 0,
    generationRequests: 0,
    pausedRequests: 0,
    completedRequests: 0,
    contextTokens: 0,
    contextPairs: 0,
    returnedRows: 0,
    generationRows: 0,
    queriedTokens: 0,
    reusedTokens: 0,
    generatedTokens: 0,
    drafts: 0,
    draftedTokens: 0,
    acceptedDraftTokens: 0,
    acceptedByPosition: [],
    emptyGenerationSlots: 0,
    replayMismatches: 0,
    executorMs: 0,
    waitedMs: 0,
    expertReadBytes: 0,
  };
}

/** Turns the counts of each iteration into its statistics, with totals since the start. */
export class LoopStatistics {
  readonly #maxRequests: number;
  #iteration = 0;
  #totalIterationMs = 0;
  #totalExecutorMs = 0;
  #totalContextTokens = 0;
  #totalGeneratedTokens = 0;
  #totalPauses = 0;
  #totalReplayMismatches = 0;

  constructor(maxRequests: number) {
    this.#maxRequests = maxRequests;
  }

  get iteration(): number {
    return this.#iteration;
  }

  /**
   * `blocks`: state of the KV cache after this iteration's allocation, before finished requests gave back their blocks;
   * `heldBlocks`: those in use after they did.
   */
  finishIteration(
    counts: IterationCounts,
    blocks: KvCacheStats,
    heldBlocks: number,
    iterationMs: number,
    microBatchId: number,
  ): IterationStats {
    this.#iteration++;
    this.#totalIterationMs += iterationMs;
    this.#totalExecutorMs += counts.executorMs;
    this.#totalContextTokens += counts.contextTokens;
    this.#totalGeneratedTokens += counts.generatedTokens;
    this.#totalPauses += counts.pausedRequests;
    this.#totalReplayMismatches += counts.replayMismatches;
    return {
      iteration: this.#iteration,
      iterationMs,
      executorMs: counts.executorMs,
      waitedMs: counts.waitedMs,
      expertReadBytes: counts.expertReadBytes,
      microBatchId,
      activeRequests: counts.activeRequests,
      newRequests: counts.newRequests,
      newRequestsQueueMs: counts.newRequestsQueueMs,
      queuedRequests: counts.queuedRequests,
      scheduledRequests: counts.contextRequests + counts.generationRequests,
      contextRequests: counts.contextRequests,
      generationRequests: counts.generationRequests,
      pausedRequests: counts.pausedRequests,
      completedRequests: counts.completedRequests,
      contextTokens: counts.contextTokens,
      queriedTokens: counts.queriedTokens,
      reusedTokens: counts.reusedTokens,
      generatedTokens: counts.generatedTokens,
      drafts: counts.drafts,
      draftedTokens: counts.draftedTokens,
      acceptedDraftTokens: counts.acceptedDraftTokens,
      acceptedByPosition: counts.acceptedByPosition,
      emptyGenerationSlots: counts.emptyGenerationSlots,
      maxBlocks: blocks.maxBlocks,
      freeBlocks: blocks.freeBlocks,
      usedBlocks: blocks.usedBlocks,
      heldBlocks,
      tokensPerBlock: blocks.tokensPerBlock,
      reusedBlocks: blocks.reusedBlocks,
      missedBlocks: blocks.missedBlocks,
      secondaryUsedBlocks: blocks.secondaryUsedBlocks,
      swappedOutBlocks: blocks.swappedOutBlocks,
      swappedInBlocks: blocks.swappedInBlocks,
      states: blocks.states,
      disk: blocks.disk,
      maxRequests: this.#maxRequests,
      totalIterationMs: this.#totalIterationMs,
      totalExecutorMs: this.#totalExecutorMs,
      totalContextTokens: this.#totalContextTokens,
      totalGeneratedTokens: this.#totalGeneratedTokens,
      totalPauses: this.#totalPauses,
      totalReplayMismatches: this.#totalReplayMismatches,
    };
  }
}

/**
 * The statistics string: always with all keys of its scheme, since existing parsers need each. An iteration of V1 is
 * one step of its batch, so its two counts are of the step: tokens that requests drew, and slots that ran for no
 * request.
 */
export function batchManagerStatsJson(
  modelType: ModelType,
  stats: IterationStats,
  memoryBytes: number,
  now: Date,
): string {
  const ofScheme =
    modelType === 'V1'
      ? {
          'Empty Generation Slots': stats.emptyGenerationSlots,
          'Total Generation Tokens': stats.generatedTokens,
        }
      : { 'Generation Requests': stats.generationRequests, 'MicroBatch ID': stats.microBatchId };
  return JSON.stringify({
    'Active Request Count': stats.activeRequests,
    'Context Requests': stats.contextRequests,
    'Free KV cache blocks': stats.freeBlocks,
    'Iteration Counter': stats.iteration,
    'Max KV cache blocks': stats.maxBlocks,
    'Max Request Count': stats.maxRequests,
    'Paused Requests': stats.pausedRequests,
    'Runtime CPU Memory Usage': memoryBytes,
    'Runtime GPU Memory Usage': 0,
    'Runtime Pinned Memory Usage': 0,
    'Scheduled Requests': stats.scheduledRequests,
    Timestamp: formatTimestamp(now),
    'Tokens per KV cache block': stats.tokensPerBlock,
    'Total Context Tokens': stats.contextTokens,
    'Used KV cache blocks': stats.usedBlocks,
    ...ofScheme,
  });
}

/** Formats a local time as %m-%d-%Y %H:%M:%S. */
export function formatTimestamp(time: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const date = `${two(time.getMonth() + 1)}-${two(time.getDate())}-${String(time.getFullYear()).padStart(4, '0')}`;
  return `${date} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}
