/** The part of a request that the schedulers read. LlmRequest is one; tests and the simulator bring plain objects. */
export interface SchedulableRequest {
  readonly requestId: bigint;
  readonly phase: 'context' | 'generation';
  /** Prompt as the engine sees it: after a pause it holds the tokens generated before. */
  readonly promptLength: number;
  /** Tokens generated since the last start or resume. */
  readonly generatedLength: number;
  /** Tokens still allowed after a start or resume: promptLength + maxNewTokens is the sequence's final length. */
  readonly maxNewTokens: number;
  /** Context tokens already in the cache; 0 until the first chunk has run. */
  readonly contextPosition: number;
  /** Blocks that the request's sequences hold; a block shared by several beams counts once. */
  readonly blocksHeld: number;
  readonly beamWidth: number;
  /**
   * Draft tokens to verify in the request's next step. The caller keeps it below maxNewTokens -
   * generatedLength: a draft beyond the last token cannot be used, and its blocks are in no reservation.
   */
  readonly draftLength: number;
  /**
   * In the context phase: name of the first full block of the prompt that is not in the cache and that the request will leave
   * there. null or absent: there is none. Two requests with the same name would compute the same block.
   */
  readonly firstMissingBlock?: number | null;
  /**
   * The request's step is running in the other micro-batch. The request holds the blocks of that step, keeps what is reserved
   * for it, and can neither be scheduled nor paused.
   */
  readonly inFlight?: boolean;
  /**
   * The request's next step lacks something other than blocks. The request keeps its blocks and what is reserved for it,
   * and is not scheduled; it can be paused.
   */
  readonly isHeld?: boolean;
  /** Requests side by side in the list with the same priority are equals for SHORTEST_FIRST; absent: all are. */
  readonly priority?: number;
  /** The logits of the prompt's rows are computed too, which may cost more than the rows themselves; absent: no. */
  readonly returnsContextRows?: boolean;
  /** LoRA adapter that the request's steps read; absent or null: none. */
  readonly adapter?: AdapterNeed | null;
  /** The request has waited too long, see passLaterArrivals; absent: it has not. */
  readonly hasAged?: boolean;
  /** Iterations in a row in which the request's context could have run and got no token; absent: 0. */
  readonly passedOver?: number;
  /** Spans of the prompt that no chunk cuts, ascending: pictures whose tokens attend to what follows them. Absent: there are none. */
  readonly wholeSpans?: readonly TokenSpan[] | undefined;
}

/** Tokens [start, end) of a prompt. */
export interface TokenSpan {
  start: number;
  end: number;
}

/** An adapter as the schedulers see it. */
export interface AdapterNeed {
  /** Requests of the same task read the same adapter. */
  readonly taskId: bigint;
  /** Pages that it takes in the cache that steps read, however many requests share it. */
  readonly pages: number;
}

/** The KV cache as the capacity scheduler sees it. */
export interface KvCapacity {
  freeBlocks: number;
  tokensPerBlock: number;
  /** Tokens attended to; Infinity without a window. */
  maxAttentionWindow: number;
  /** Free slots for the states of sequences; absent: the model has no states. */
  freeStateSlots?: number;
  /**
   * Given where sequences share blocks. Called once for each plan; the function it returns is called for one paused
   * request after the other and returns how many blocks each pause frees.
   */
  creditOfPauses?: () => (requestId: bigint) => number;
}

export interface CapacityPlan<R extends SchedulableRequest> {
  /** Requests in the order in which the micro-batch scheduler is to walk them. */
  scheduled: R[];
  /** Requests whose blocks are to be freed before this iteration (MAX_UTILIZATION only), last in the list first. */
  paused: R[];
}

/** The cache of LoRA adapters that a step reads. */
export interface AdapterCapacity {
  /** Pages of all adapters together. */
  maxPages: number;
  /** Most adapters. */
  maxAdapters: number;
  /**
   * Whether a task's adapter is in the executor. Where it is not, a step has to load it first, which takes it up to a tenth
   * of a second: so one step loads one at most for requests that can wait. Absent: any number.
   */
  isLoaded?(taskId: bigint): boolean;
}

export interface CapacityOptions {
  /**
   * MAX_UTILIZATION: a request starts only if it could generate this many tokens together with the requests
   * in front of it: see StartHorizon. Absent or 0: a request starts wherever it fits into one step.
   */
  startHorizon?: number | undefined;
  /** Room for the requests' adapters; absent or null: it does not limit who runs. */
  adapters?: AdapterCapacity | null | undefined;
}

/** Policies that a user chooses from. */
export const SCHEDULER_POLICIES = ['GUARANTEED_NO_EVICT', 'MAX_UTILIZATION'] as const;
export type SchedulerPolicy = (typeof SCHEDULER_POLICIES)[number];
/** Policies that the capacity scheduler knows: V1 runs STATIC_BATCH whatever the user's policy. */
export const CAPACITY_POLICIES = [...SCHEDULER_POLICIES, 'STATIC_BATCH'] as const;
export type CapacityPolicy = (typeof CAPACITY_POLICIES)[number];

/** Ways to share an iteration's tokens among its contexts: see scheduleMicroBatch and shortestFirst. */
export const CHUNKING_POLICIES = ['FIRST_COME_FIRST_SERVED', 'EQUAL_PROGRESS', 'SHORTEST_FIRST'] as const;
export type ChunkingPolicy = (typeof CHUNKING_POLICIES)[number];

/** Bound on the chunks of an iteration, in milliseconds: `most`, and down to `least` while few sequences generate. */
export interface ChunkMs {
  least: number;
  most: number;
}

export interface Chunking {
  policy: ChunkingPolicy;
  /** Chunk lengths are multiples of this many tokens: tokensPerBlock. */
  unit: number;
  /** Longest chunk; absent: only maxNumTokens limits it. */
  maxContextLength?: number;
  /** Most context tokens of one iteration, all chunks together; absent: only maxNumTokens limits them. */
  maxContextTokens?: number;
  /**
   * Tokens of this context that an iteration has time for: a multiple of the unit, or a smaller number that divides it. A
   * longer context is cut, and all cut contexts share the time of one of them; the others run whole. All together take at most
   * MAX_TOGETHER times as long. Absent: there is time for any number.
   */
  longestChunk?: (request: SchedulableRequest) => number;
}

export interface MicroBatchLimits {
  /** Most requests of one iteration. */
  maxBatchSize: number;
  /** Most sequences of one iteration: a request counts with all its beams or samples. Absent: no limit. */
  maxSequences?: number;
  /** Most tokens of one iteration, context and generation together. */
  maxNumTokens: number;
  /** Absent: contexts run whole. */
  chunking?: Chunking;
}

/** A request's part of this iteration; context chunks come first. */
export interface ScheduledChunk<R extends SchedulableRequest> {
  request: R;
  /** Context tokens of this iteration; 0 for a generating request. */
  contextTokens: number;
}

/**
 * True once the request holds blocks: it is generating, or in context past its first chunk, or its first chunk is
 * running.
 */
export function hasStarted(request: SchedulableRequest): boolean {
  return request.phase === 'generation' || request.contextPosition > 0 || request.inFlight === true;
}
