/** What the schedulers see of a request. LlmRequest is one; tests and the simulator bring plain objects. */
export interface SchedulableRequest {
  readonly requestId: bigint;
  readonly phase: 'context' | 'generation';
  /** Prompt as the engine sees it: after a pause it holds the tokens generated before. */
  readonly promptLength: number;
  /** Tokens generated since the last start or resume. */
  readonly generatedLength: number;
  /** Tokens still allowed after a start or resume: promptLength + maxNewTokens is the sequence's final length. */
  readonly maxNewTokens: number;
  /** Context tokens already in the cache. */
  readonly contextPosition: number;
  /** Blocks that its sequences hold. */
  readonly blocksHeld: number;
  readonly beamWidth: number;
  readonly draftLength: number;
}

/** The KV cache as the capacity scheduler sees it. */
export interface KvCapacity {
  freeBlocks: number;
  tokensPerBlock: number;
  /** Tokens attended to; Infinity without a window. */
  maxAttentionWindow: number;
}

export interface CapacityPlan<R extends SchedulableRequest> {
  scheduled: R[];
  /** Requests whose blocks are to be freed before this iteration (MAX_UTILIZATION only). */
  paused: R[];
}

export type SchedulerPolicy = 'MAX_UTILIZATION' | 'GUARANTEED_NO_EVICT';

export interface MicroBatchLimits {
  maxBatchSize: number;
  maxNumTokens: number;
  /** Absent: contexts run whole. */
  chunking?: {
    policy: 'FIRST_COME_FIRST_SERVED' | 'EQUAL_PROGRESS';
    /** tokensPerBlock. */
    unit: number;
    maxContextLength?: number;
  };
}

/** A request of this iteration; context chunks first. */
export interface ScheduledChunk<R extends SchedulableRequest> {
  request: R;
  /** Context tokens of this iteration; 0 for a generating request. */
  contextTokens: number;
}
