/** What an iteration did and what it cost. Times in milliseconds. */
export interface IterationStats {
  iteration: number;
  /** Start of getInferenceRequests to the end of the iteration; with overlap, from the end of the one before to its own. */
  iterationMs: number;
  /** Part of iterationMs that was spent inside the executor; the rest is JavaScript that nothing hides. */
  executorMs: number;
  /** Part of executorMs that was a wait for other engines of this process, with which it shares the processors. */
  waitedMs: number;
  /** Which micro-batch it was: with overlap 0 and 1 in turns, 0 for one that ran beside nothing; without overlap 0. */
  microBatchId: 0 | 1;
  activeRequests: number;
  /** Requests that became active in this iteration, and the milliseconds from their arrivals to it, summed. */
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
  /** Prompt tokens of the contexts that began with a look into the cache, and those of them that it had. */
  queriedTokens: number;
  reusedTokens: number;
  /** Tokens drawn in this iteration. */
  generatedTokens: number;
  /** Requests that had a draft in this iteration, the tokens of these drafts, and those of them that were right. */
  drafts: number;
  draftedTokens: number;
  acceptedDraftTokens: number;
  /** V1 only: slots of requests that have ended, which ran on with their batch. */
  emptyGenerationSlots: number;
  maxBlocks: number;
  /** Free and used blocks are those while the executor ran: before what ended gave its own back. */
  freeBlocks: number;
  usedBlocks: number;
  /** Blocks in use at the end of the iteration: what ended in it has given its own back. */
  heldBlocks: number;
  tokensPerBlock: number;
  /** Full blocks of prompts that were in the cache, and those that could have been but were not, since the start. */
  reusedBlocks: number;
  missedBlocks: number;
  /** Blocks of the secondary pool that hold something; blocks moved there and back since the start. */
  secondaryUsedBlocks: number;
  swappedOutBlocks: number;
  swappedInBlocks: number;
  maxRequests: number;
  /** Totals since the start. */
  totalIterationMs: number;
  totalExecutorMs: number;
  totalContextTokens: number;
  totalGeneratedTokens: number;
  totalPauses: number;
  /** Tokens generated again after a pause that differed from those already sent; 0 for an executor that keeps the promise. */
  totalReplayMismatches: number;
}
