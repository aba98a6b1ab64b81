import type { DiskStats, StateStats } from '../kvcache/kv-cache-stats.js';

/** Work and cost of one iteration. Times are in milliseconds. */
export interface IterationStats {
  iteration: number;
  /**
   * Time from the start of getInferenceRequests to the end of the iteration; with overlap, from the end of the previous
   * iteration to the end of this one.
   */
  iterationMs: number;
  /** Part of iterationMs that was spent inside the executor; the rest is JavaScript that nothing hides. */
  executorMs: number;
  /** Part of executorMs spent waiting for other engines of this process, which share the processors. */
  waitedMs: number;
  /** Bytes of experts that rows went to and that were not in memory; 0 where memory holds all weights. */
  expertReadBytes: number;
  /** Number of the micro-batch among those that take turns: with two of them 0 and 1; 0 for one that ran alone. */
  microBatchId: number;
  activeRequests: number;
  /**
   * Requests that became active in this iteration; newRequestsQueueMs is the sum of their times from arrival until
   * then.
   */
  newRequests: number;
  newRequestsQueueMs: number;
  /** Active requests that have not run yet: they wait for blocks or for their turn. */
  queuedRequests: number;
  scheduledRequests: number;
  contextRequests: number;
  generationRequests: number;
  pausedRequests: number;
  completedRequests: number;
  contextTokens: number;
  /** Prompt tokens looked up in the cache by contexts that began in this iteration; reusedTokens is how many it had. */
  queriedTokens: number;
  reusedTokens: number;
  /** Tokens drawn in this iteration. */
  generatedTokens: number;
  /**
   * Requests that had a draft in this iteration; then the tokens of these drafts, and those of them that were right.
   */
  drafts: number;
  draftedTokens: number;
  acceptedDraftTokens: number;
  /**
   * How many of these drafts had their token at this position accepted, from the first token of a draft on:
   * [longest draft of the iteration]. The sum is acceptedDraftTokens.
   */
  acceptedByPosition: readonly number[];
  /** V1 only: slots of requests that have ended but still run along with their batch. */
  emptyGenerationSlots: number;
  maxBlocks: number;
  /** Free and used blocks while the executor ran, before ended requests gave theirs back. */
  freeBlocks: number;
  usedBlocks: number;
  /** Blocks in use at the end of the iteration, after ended requests gave theirs back. */
  heldBlocks: number;
  tokensPerBlock: number;
  /** Full blocks of prompts found in the cache, and those that could have been there but were not, since the start. */
  reusedBlocks: number;
  missedBlocks: number;
  /** Blocks of the secondary pool that hold something; then blocks moved there and back since the start. */
  secondaryUsedBlocks: number;
  swappedOutBlocks: number;
  swappedInBlocks: number;
  /** Slots and snapshots of the states of sequences; null: the model has no states. */
  states: StateStats | null;
  /** Blocks kept on a disk; null: none are. */
  disk: DiskStats | null;
  maxRequests: number;
  /** Totals since the engine was started. */
  totalIterationMs: number;
  totalExecutorMs: number;
  totalContextTokens: number;
  totalGeneratedTokens: number;
  totalPauses: number;
  /** Tokens generated again after a pause that differed from those already sent; 0 for an executor that keeps the promise. */
  totalReplayMismatches: number;
}
