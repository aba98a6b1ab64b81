import type { AvailableMemory } from '../kvcache/available-memory.js';
import type { KvDtype } from '../kvcache/kv-dtype.js';
import type { ChunkingPolicy, SchedulerPolicy } from '../scheduler/types.js';
import type { WorkerRestartOptions } from './restart-policy.js';
import type {
  GetInferenceRequestsCallback,
  OnKvCacheEventsCallback,
  PollStopSignalsCallback,
  ReturnBatchManagerStatsCallback,
  SendResponseCallback,
} from './types.js';

/** Instruction sets of the native executor, from the slowest to the fastest. */
export type InstructionSet = 'scalar' | 'avx2' | 'avx512' | 'avx512bf16';

/** The executors that there are, from the one that `auto` likes best. */
export const EXECUTOR_NAMES = ['tensorflow', 'native', 'wasm'] as const;

export type ExecutorName = (typeof EXECUTOR_NAMES)[number];

/** As a user names it. */
export type ExecutorChoice = 'auto' | ExecutorName;

/**
 * starting: the engine is loading. running. restarting: the worker died; what was active has failed, and another
 * worker comes. draining: no more requests are taken, active ones go on. stopped: ended as asked. failed: it could not
 * be loaded, or the worker died and no other one comes.
 */
export type ManagerState = 'starting' | 'running' | 'restarting' | 'draining' | 'stopped' | 'failed';

/**
 * The batching scheme. All three give a request the same tokens and log-probs, bit for bit.
 *
 * InflightFusedBatching: requests join and leave between iterations; context and generation share one forward.
 * InflightBatching: the same with a forward for contexts and one for generation in each iteration.
 * V1: batches in lockstep. A batch starts when the one before has ended, is padded to its longest prompt, and answers
 * when all of it has ended. Runs prompts whole: enableChunkedContext is refused with it.
 */
export type ModelType = 'V1' | 'InflightBatching' | 'InflightFusedBatching';
/** Which keys the statistics string has: those of the batch manager, or the richer ones of later versions. */
export type StatsFormat = 'BatchManager' | 'IterationStats';
export type Speculate = 'none' | 'ngram';

export interface KvCacheConfig {
  /** Most tokens in the KV cache over all requests. Not given: only the fraction limits it. */
  maxTokens?: number;
  /**
   * Tokens that a token attends to, itself included; a request holds blocks for no more, and may be longer than the
   * pool. Not given: the model's sliding window where it has one, else all tokens.
   */
  maxAttentionWindow?: number;
  /** Of the window, the first tokens of the sequence, which are always attended to (StreamingLLM); default 0. */
  sinkTokenLength?: number;
  /** Share of the memory that is available after loading which the KV cache may take; default 0.9. */
  freeGpuMemoryFraction?: number;
  /** Keep the blocks of ended requests and let prompts that begin alike share them; default false. */
  enableBlockReuse?: boolean;
  /** With reuse: use a block too of which only the first tokens are common; default true. */
  enablePartialReuse?: boolean;
  /** With partial reuse: copy such a block; default true. Without it unused ones are taken over, and others not used. */
  copyOnPartialReuse?: boolean;
  /**
   * With reuse: bytes of a secondary pool. Cached blocks that have to make room are swapped out to it instead of being
   * forgotten, and swapped in where a prompt needs them again. It is taken beside what freeGpuMemoryFraction gives, from
   * the same memory, less which that fraction counts. Default 0.
   */
  hostCacheSize?: number;
  /** Lowest retention priority, 0 to 100, with which a block is swapped out; default 30. */
  secondaryOffloadMinPriority?: number;
  /** Events about cached blocks that are kept within one iteration for onKvCacheEvents; default 16 384 where that is given, else 0. */
  eventBufferMaxSize?: number;
}

/** TrtGptModelOptionalParams of the original, and what a CPU engine needs besides. */
export interface OptionalParams {
  kvCacheConfig?: KvCacheConfig;
  /** Default false: a prompt runs whole in one iteration. */
  enableChunkedContext?: boolean;
  /**
   * With enableChunkedContext: how contexts that do not fit into an iteration together share it. FIRST_COME_FIRST_SERVED:
   * the first takes what there is. EQUAL_PROGRESS: a block each, in turns. SHORTEST_FIRST: what can end goes first, so that
   * short prompts do not wait for a long one, which has its turn at least every fourth iteration. Default
   * FIRST_COME_FIRST_SERVED.
   */
  chunkingPolicy?: ChunkingPolicy;
  /**
   * Part the requests that run into two micro-batches, so that the loop's work for one is hidden behind the forward of the
   * other, on a thread of the executor's own; default false. Few requests run as one micro-batch all the same. It pays
   * where that work takes a good part of an iteration, not where forwards of half the size cost more. Refused with V1.
   */
  enableTrtOverlap?: boolean;
  /** With enableTrtOverlap: fewest requests of a micro-batch beside another one; default 16. */
  minMicroBatchSize?: number;
  /** Requests that can be active at once; default 64. */
  maxNumSequences?: number;
  /** Requests of one iteration; default maxNumSequences. */
  maxBatchSize?: number;
  /** Tokens of one iteration; default 2048 with chunked context, else the longest prompt (at least 2048). */
  maxNumTokens?: number;
  /**
   * What the KV cache counts as available after loading, in the place of what the system says: for a host that splits the
   * memory between several engines. `from` says in an error where it comes from.
   */
  availableMemory?: AvailableMemory;
  /** Lower the engine's own limits. */
  maxInputLen?: number;
  maxSeqLen?: number;
  /** Threads that compute, the worker included; default: the container's CPU quota. */
  threads?: number;
  /**
   * Where several engines of this process compute: one with twice the weight of another gets twice its time. 1 to 1000,
   * default 1.
   */
  computeWeight?: number;
  /** Default: f32 for f32 weights, else bf16. int8: of the native executor. */
  kvDtype?: KvDtype;
  /** Default 32. */
  tokensPerBlock?: number;
  /** Of the native executor. */
  instructionSet?: InstructionSet;
  /**
   * What computes. native: the C++ addon. wasm: WebAssembly in one thread, where the addon does not run; its KV cache is f32.
   * auto, the default: the fastest that runs here. Not with executorModule.
   */
  executor?: ExecutorChoice;
  /** Most top log-probs per token that a request may ask for; default: as many as the vocabulary has tokens. */
  maxTopLogProbs?: number;
  /**
   * Most bytes that active requests may hold together for logits to be returned (return_context_logits,
   * return_generation_logits) and for top log-probs beyond 20 of a token; default 512 MiB. It is taken beside the KV
   * cache, as it is used.
   */
  maxReturnedLogitsBytes?: number;
  /** While nothing is active: milliseconds between calls of getInferenceRequests and pollStopSignals; default 20. */
  idlePollIntervalMs?: number;
  /**
   * Iterations (not only in a row) that a request may wait before it goes in front of all that came later, whatever
   * their priorities: against starvation. Default: no limit.
   */
  maxWaitIterations?: number;
  /**
   * Requests that may wait in the engine for their first step: while so many do, no more are asked for, and what comes
   * next is up to whoever holds them. Default: as many as there are places (maxNumSequences). Not with V1.
   */
  maxWaitingRequests?: number;
  /**
   * MAX_UTILIZATION starts a request only if it could generate this many tokens beside those that run in front of it:
   * against requests that are started, paused and computed again. Default: it starts whatever fits into one step.
   */
  startHorizon?: number;
  /**
   * Bound on the time between two tokens of a generating request, in milliseconds: while anything generates, prompts get
   * only as many tokens of an iteration as there is time for, by what recent iterations took. Needs
   * enableChunkedContext. A generation that takes longer by itself is no faster for it. Default: no bound.
   */
  maxInterTokenLatencyMs?: number;
  /**
   * Bound on the time that an iteration spends on prompts which it does not end, in milliseconds, by what recent iterations
   * took: so long a request that comes may have to wait for a long prompt of another; four times as long where there is no
   * other request at all. Prompts that fit into it run whole, all prompts of an iteration together in at most four times as long.
   * Needs enableChunkedContext. 'auto': what suits the executor that comes to run (engine/executors/chunk-times.ts).
   * Default: no bound.
   */
  maxChunkMs?: number | 'auto';
  /**
   * Where the engine finds drafts of tokens that may come next, so that one step can give a sequence several tokens. No
   * answer changes by it. ngram: where a sequence's last tokens stood in it before, what followed is proposed (prompt
   * lookup); good for answers that repeat their prompt, such as edited code and summaries. Default none. Not with V1.
   */
  speculate?: Speculate;
  /**
   * Path of the engine directory of a smaller model with the same tokenizer, which draws drafts where nothing else proposes
   * any. No answer changes by it. Its KV cache holds as many tokens as the engine's and comes out of the same memory.
   * Default: none. Not with V1, enableTrtOverlap or executorModule.
   */
  draftEnginePath?: string;
  /** Most tokens of a draft; default 16. How many it has depends on how often they are right and on the load. */
  maxDraftLen?: number;
  /** The form of the statistics string that returnBatchManagerStats gets; default BatchManager. */
  statsFormat?: StatsFormat;
  /**
   * Milliseconds without a finished iteration, while something is active, after which the worker counts as stuck:
   * what is active fails and the worker is started anew. Must exceed the longest iteration. Default 600 000; 0 = never.
   */
  watchdogTimeoutMs?: number;
  /**
   * Milliseconds that a worker which was told to end may take, since nothing can interrupt a native call. After that
   * the manager gives up with a WorkerStuckError. Default 60 000.
   */
  terminateTimeoutMs?: number;
  /** How a worker that died is replaced; false: not at all. Does not concern the first start, whose failure rejects `ready`. */
  workerRestart?: WorkerRestartOptions | false;
  /** Checks the KV cache's invariants after every iteration; slow, for tests. */
  checkIntegrity?: boolean;
  /**
   * URL of a module that exports `loadExecutor` as engine/worker/load-executor.ts does, for an executor of one's own.
   * It is imported in the worker, and gets all of these parameters, those of its own too.
   */
  executorModule?: string | URL;
  /**
   * URL of a module with logits post-processors, which requests name (logits_post_processor_name): see
   * LogitsPostProcessorModule. It is imported in the worker. Refused with V1. With enableTrtOverlap a micro-batch that has
   * such requests runs in the loop's own thread.
   */
  logitsPostProcessorModule?: string | URL;
  /** Milliseconds that one call of a post-processor may take; one that took longer ends its request. Default 1000. */
  logitsPostProcessorTimeoutMs?: number;
}

/** The callbacks as functions of the host's thread. */
export interface FunctionCallbacks {
  getInferenceRequests: GetInferenceRequestsCallback;
  sendResponse: SendResponseCallback;
  pollStopSignals?: PollStopSignalsCallback;
  returnBatchManagerStats?: ReturnBatchManagerStatsCallback;
  callbackModule?: undefined;
}

/** The callbacks as a module, imported and called inside the worker: see CallbackModule. */
export interface ModuleCallbacks {
  callbackModule: string | URL;
  getInferenceRequests?: undefined;
  sendResponse?: undefined;
  pollStopSignals?: undefined;
  returnBatchManagerStats?: undefined;
}

export type GptManagerOptions = (FunctionCallbacks | ModuleCallbacks) & {
  /** Path of the engine directory. */
  enginePath: string;
  modelType: ModelType;
  /** Greatest beam width of any request (>= 1). */
  maxBeamWidth: number;
  schedulerPolicy: SchedulerPolicy;
  optionalParams?: OptionalParams;
  /**
   * A request with this id is not run: it shuts the manager down once everything active has ended, and what comes behind it
   * is refused. It is not answered, takes no place, and may come more than once.
   */
  terminateReqId?: bigint;
  /** Called with each change of the manager's state; `failure` is the reason for 'restarting' and 'failed', else null. */
  onStateChange?: (state: ManagerState, failure: Error | null) => void;
  /**
   * Called for failures that belong to no request's answer: a callback that threw, or whose promise was rejected (a
   * CallbackError, which names it), a worker that died. Not given: each is a warning of the process (SkeinWarning), as is
   * what onError itself throws or is rejected with. No failure of a callback ends the process, or another callback's work.
   */
  onError?: (error: Error) => void;
  /** Called in this thread after each iteration with the richer statistics, also where the callbacks are a module. */
  onIterationStats?: (stats: IterationStats) => void;
  /**
   * Called in this thread after each iteration that stored, removed or changed cached blocks, also where the callbacks are
   * a module, which may export one of its own beside it. There are such events with kvCacheConfig.enableBlockReuse.
   */
  onKvCacheEvents?: OnKvCacheEventsCallback;
};

/** What an iteration did and what it cost. Times in milliseconds. */
export interface IterationStats {
  iteration: number;
  /** Start of getInferenceRequests to the end of the iteration; with overlap, from the end of the one before to its own. */
  iterationMs: number;
  /** Of that, time inside the executor; the rest is JavaScript that nothing hides. */
  executorMs: number;
  /** Of executorMs, the wait for other engines of this process, with which it shares the processors. */
  waitedMs: number;
  /** With overlap 0 and 1 in turns, 0 for one that ran beside nothing; without it 0. */
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
