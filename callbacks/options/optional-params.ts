import { MAX_INT32 } from '../../base/int32.js';
import {
  BYTES,
  COUNT,
  isObject,
  MODULE_URL,
  NAME,
  numberIn,
  numberOf,
  oneOf,
  rule,
  SHARE,
  SWITCH,
  type Values,
  wholeNumber,
} from '../../base/option-values.js';
import type { AvailableMemory } from '../../kvcache/available-memory.js';
import type { KvDtype } from '../../kvcache/cache-shape.js';
import { CHUNKING_POLICIES } from '../../scheduler/tokens/types.js';
import { checkWorkerRestart, type WorkerRestartOptions } from '../restart-policy.js';
import { type FlagText, ofGptManager, ofPrograms, ofServe } from './option.js';
import {
  chunkMsText,
  DEFAULT_CHUNKING_POLICY,
  type ExecutorChoice,
  INSTRUCTION_SETS,
  type PinThreads,
  type Speculate,
  type StatsFormat,
} from './words.js';

export const DEFAULT_MAX_NUM_SEQUENCES = 64;
export const DEFAULT_MAX_NUM_TOKENS = 2048;
export const DEFAULT_TOKENS_PER_BLOCK = 32;
export const DEFAULT_MAX_DRAFT_LEN = 16;
/**
 * Fewest requests of a micro-batch while another one runs. Below it, halving a batch costs more than the loop's own
 * work between two calls: the weights are read once a call, whatever the number of rows.
 */
export const DEFAULT_MIN_MICRO_BATCH_SIZE = 16;
export const DEFAULT_IDLE_POLL_INTERVAL_MS = 20;
export const DEFAULT_WATCHDOG_TIMEOUT_MS = 600_000;
export const DEFAULT_TERMINATE_TIMEOUT_MS = 60_000;
export const DEFAULT_RANK_TIMEOUT_MS = 30_000;
export const DEFAULT_LOGITS_POST_PROCESSOR_TIMEOUT_MS = 1000;
export const DEFAULT_MAX_RETURNED_LOGITS_BYTES = 512 * 2 ** 20;

/** Possible numbers of tokens of a KV cache block: the kernels walk the cache in steps that such blocks fill. */
const TOKENS_PER_BLOCK = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];

/** A number of requests, with a limit well above any need. */
const REQUESTS = wholeNumber(1, 65536);

const MS: Values<number> = wholeNumber(0, MAX_INT32);

function isWorkerRestart(value: unknown): boolean {
  try {
    checkWorkerRestart(value as WorkerRestartOptions);
    return true;
  } catch {
    return false;
  }
}

/** True for a description of available memory with a number of bytes. */
const isAvailableMemory = (value: unknown) => isObject(value) && BYTES.accepts(value.bytes);

/** Flag text shared by options that lower a limit of the built engine. */
const OF_THE_MODEL = {
  group: 'Requests and answers',
  unit: 'tokens',
  defaultText: "the model's",
} as const satisfies Partial<FlagText>;

/** The options of OptionalParams, but for kvCacheConfig. */
export const OPTIONAL_PARAMS = {
  /** Lets a prompt run in chunks over several iterations. Default false: a prompt runs whole in one iteration. */
  enableChunkedContext: ofServe(SWITCH, {
    name: 'chunkedPrefill',
    seedName: 'enableChunkedContext',
    default: false,
    isInFlightOnly: true,
    flag: {
      group: 'Batching',
      formerly: 'enableChunkedContext',
      aliases: ['enableChunkedPrefill'],
      default: true,
      help: 'Split long prompts into chunks, so that other answers continue meanwhile.',
    },
  }),
  /**
   * With enableChunkedContext: how contexts that do not fit into one iteration together share it.
   * FIRST_COME_FIRST_SERVED: the first takes what there is. EQUAL_PROGRESS: a block each, in turns. SHORTEST_FIRST:
   * contexts that can end go first, so that short prompts do not wait for a long one, which has its turn at least every
   * fourth iteration. Default FIRST_COME_FIRST_SERVED.
   */
  chunkingPolicy: ofServe(oneOf(...CHUNKING_POLICIES), {
    name: 'chunkingPolicy',
    seedName: 'chunkingPolicy',
    default: 'FIRST_COME_FIRST_SERVED',
    flag: {
      group: 'Batching',
      metavar: 'POLICY',
      defaultText: DEFAULT_CHUNKING_POLICY,
      help: 'How the token budget is split when prompts exceed it. SHORTEST_FIRST: short prompts first; EQUAL_PROGRESS: a block for each in turn; FIRST_COME_FIRST_SERVED: in order of arrival.',
    },
  }),
  /**
   * Splits the running requests into two micro-batches, so that the loop's work for one is hidden behind the forward of
   * the other, which runs on a thread of the executor's own; default false. Few requests run as one micro-batch all the
   * same. Worth it where the loop's work takes a good part of an iteration, not where forwards of half the size cost
   * more. Refused with V1.
   */
  enableTrtOverlap: ofServe(SWITCH, {
    name: 'microBatchOverlap',
    seedName: 'enableTrtOverlap',
    default: false,
    flag: {
      group: 'Batching',
      formerly: 'enableTrtOverlap',
      default: false,
      help: 'Run two micro-batches in turn, to hide the work between forward passes. Useful where that work takes long.',
    },
  }),
  /**
   * Fewest requests of a micro-batch that runs at the same time as another one; default 16, and with
   * pipelineParallelSize, whose stages have nothing to do otherwise, as few as are faster than all together:
   * 1 where the stages are even.
   */
  minMicroBatchSize: ofGptManager(COUNT, {
    default: DEFAULT_MIN_MICRO_BATCH_SIZE,
    help: 'Minimum number of requests in each micro-batch where some take turns: with enableTrtOverlap, and with pipelineParallelSize, where the default is 1 if the stages are even.',
  }),
  /**
   * False: computes with the matrices of a GGUF where the file has them, instead of packing a copy for the processor; `enginePath` is then the
   * GGUF, and nothing is written. Of the native executor alone, in one process. Default true.
   */
  panels: ofServe(SWITCH, {
    name: 'panels',
    default: true,
    flag: {
      group: 'Models',
      isForAsking: true,
      default: true,
      help: 'Pack a copy of the weights for the processor. --no-panels computes from the mapped GGUF instead: it starts at once, writes nothing, and is somewhat slower.',
    },
  }),
  /**
   * Share of the experts' bytes that counts as memory, where the model has experts: below 1 they are read from their mapped file as tokens
   * go to them, and the system keeps in memory what fits. Of the native executor alone, in one process. Default 1.
   */
  expertFraction: ofServe(SHARE, {
    name: 'expertFraction',
    default: 1,
    flag: {
      group: 'Models',
      unit: 'share',
      defaultText: '1',
      isForAsking: true,
      help: "Share of a mixture's experts that memory has room for. Below 1, experts are read from the disk as tokens need them: for models larger than memory.",
    },
  }),
  /** Most requests active at once; default 64. */
  maxNumSequences: ofServe(REQUESTS, {
    name: 'maxActiveRequests',
    seedName: 'maxNumSequences',
    default: DEFAULT_MAX_NUM_SEQUENCES,
    flag: {
      group: 'Batching',
      isCommon: true,
      unit: 'requests',
      formerly: 'maxNumSequences',
      aliases: ['maxNumSeqs'],
      defaultText: String(DEFAULT_MAX_NUM_SEQUENCES),
      help: 'Most requests that run at once.',
    },
  }),
  /** Most requests in one iteration; default maxNumSequences. */
  maxBatchSize: ofServe(REQUESTS, {
    name: 'maxBatchRequests',
    seedName: 'maxBatchSize',
    default: 'maxNumSequences',
    flag: {
      group: 'Batching',
      unit: 'requests',
      formerly: 'maxBatchSize',
      defaultText: '--max-active-requests',
      help: 'Most requests in one iteration.',
    },
  }),
  /** Most tokens in one iteration; default 2048 with chunked context, else the longest prompt (at least 2048). */
  maxNumTokens: ofServe(COUNT, {
    name: 'maxBatchTokens',
    seedName: 'maxNumTokens',
    default: `${DEFAULT_MAX_NUM_TOKENS}; without chunks the longest prompt`,
    flag: {
      group: 'Batching',
      unit: 'tokens',
      formerly: 'maxNumTokens',
      aliases: ['maxNumBatchedTokens'],
      defaultText: String(DEFAULT_MAX_NUM_TOKENS),
      help: 'Token budget of one iteration, for prompts and answers together.',
    },
  }),
  /**
   * Memory that the KV cache counts as available after loading, in place of what the system reports: for a
   * host that splits the memory between several engines. `from` says in an error where the number comes from.
   */
  availableMemory: ofGptManager(
    rule<AvailableMemory>('an object with its bytes, and from where they are', isAvailableMemory),
    {
      default: 'what the system says',
      help: 'Memory that counts as available for the KV cache after loading: {bytes, from}.',
    },
  ),
  /** Lowers the engine's own limit on the length of a prompt. */
  maxInputLen: ofServe(COUNT, {
    name: 'maxPromptTokens',
    seedName: 'max_input_len',
    default: "the engine's",
    flag: {
      ...OF_THE_MODEL,
      formerly: 'maxInputLen',
      help: "Longest prompt. Can only lower the model's limit.",
    },
  }),
  /** Lowers the engine's own limit on prompt and answer together. */
  maxSeqLen: ofServe(wholeNumber(2, MAX_INT32), {
    name: 'maxContextTokens',
    seedName: 'max_seq_len',
    default: "the engine's",
    flag: {
      ...OF_THE_MODEL,
      isCommon: true,
      isForAsking: true,
      formerly: 'maxSeqLen',
      aliases: ['maxModelLen'],
      help: "Longest prompt and answer together (context length). Can only lower the model's limit.",
    },
  }),
  /**
   * Threads that compute, the worker included; default: the physical cores that this process may use, without efficiency cores, and no
   * more than the container's CPU quota.
   */
  threads: ofServe(wholeNumber(1, 1024), {
    name: 'threads',
    default: "physical cores, without efficiency cores, within the container's CPU quota",
    flag: {
      group: 'Models',
      isCommon: true,
      unit: 'threads',
      metavar: 'N',
      defaultText: "physical cores, without efficiency cores, within the container's CPU quota",
      isForAsking: true,
      help: 'Number of compute threads.',
    },
  }),
  /**
   * Whether each computing thread stays on a core of its own, with weights and cache in the memory near it. `auto` does so for ranks that
   * share a machine of several nodes (sockets, mostly), `on` always: for a process that has its processors to itself. Linux, native
   * executor. Default auto.
   */
  pinThreads: ofServe(oneOf('auto', 'on', 'off') satisfies Values<PinThreads>, {
    name: 'pinThreads',
    default: 'auto',
    flag: {
      group: 'Running',
      default: 'auto',
      help: 'Keep each compute thread on a core of its own, with weights and cache in near memory: auto does so for ranks on a machine of several nodes.',
    },
  }),
  /**
   * Share of the processors relative to other engines of this process: an engine with twice the weight of
   * another gets twice its computing time. 1 to 1000, default 1.
   */
  computeWeight: ofServe(wholeNumber(1, 1000), {
    name: 'computeWeight',
    default: 1,
    flag: {
      group: 'Models',
      metavar: 'WEIGHT',
      default: 1,
      help: 'Share of processor time when several models are busy; twice the weight gets twice the time.',
    },
  }),
  /** Number type of the KV cache. Default: f32 for f32 weights, else bf16. int8 needs the native executor. */
  kvDtype: ofServe(oneOf('f32', 'bf16', 'int8') satisfies Values<KvDtype>, {
    name: 'kvCacheDtype',
    plain: oneOf('auto', 'f32', 'bf16', 'int8'),
    toField: (plain) => (plain === 'auto' ? undefined : plain),
    default: 'f32 with f32 weights, else bf16',
    flag: {
      group: 'KV cache',
      formerly: 'kvDtype',
      default: 'auto',
      isForAsking: true,
      help: 'Precision of the KV cache. auto: f32 with f32 weights, else bf16; int8: nearly twice the tokens of bf16, native executor only.',
    },
  }),
  /** Tokens of a block of the KV cache: a power of two from 8 to 4096. Default 32. */
  tokensPerBlock: ofServe(numberOf(TOKENS_PER_BLOCK), {
    name: 'tokensPerBlock',
    seedName: 'tokensPerBlock',
    default: DEFAULT_TOKENS_PER_BLOCK,
    flag: {
      group: 'KV cache',
      unit: 'tokens',
      defaultText: String(DEFAULT_TOKENS_PER_BLOCK),
      help: 'Tokens per KV cache block, a power of two from 8 to 4096.',
    },
  }),
  /** Instruction set of the native executor. */
  instructionSet: ofGptManager(oneOf(...INSTRUCTION_SETS), {
    default: "the processor's best",
    help: `instruction set of the native executor: ${INSTRUCTION_SETS.join(', ')}`,
  }),
  /**
   * Backend that computes. native: the C++ addon. wasm: WebAssembly in one thread, where the addon does not run; its KV
   * cache is f32. auto, the default: the fastest that runs here. Not with executorModule.
   */
  executor: ofServe(oneOf('auto', 'native', 'tensorflow', 'wasm') satisfies Values<ExecutorChoice>, {
    name: 'executor',
    default: 'auto',
    flag: {
      group: 'Models',
      default: 'auto',
      isForAsking: true,
      help: 'Backend that runs the model. native: the C++ addon; wasm: slower, runs wherever Node.js runs; tensorflow: after "skein setup tensorflow". auto: the fastest that works here (tensorflow only with a GPU).',
    },
  }),
  /** Most top log-probs per token that a request may ask for; default: as many as the vocabulary has tokens. */
  maxTopLogProbs: ofGptManager(wholeNumber(0, MAX_INT32), {
    default: 'the vocabulary',
    help: 'Most top log-probs a token that a request may ask for.',
  }),
  /**
   * Most bytes that active requests may hold together for returned logits (return_context_logits,
   * return_generation_logits) and for top log-probs beyond 20 of a token; default 512 MiB. The memory is taken in
   * addition to the KV cache, as it is used.
   */
  maxReturnedLogitsBytes: ofPrograms(BYTES, {
    name: 'maxReturnedLogitsBytes',
    default: DEFAULT_MAX_RETURNED_LOGITS_BYTES,
    help: 'Bytes that active requests may hold together for logits to be returned.',
  }),
  /** Milliseconds between calls of getInferenceRequests and pollStopSignals while nothing is active; default 20. */
  idlePollIntervalMs: ofGptManager(numberIn({ min: 0, max: MAX_INT32, integer: false }), {
    default: DEFAULT_IDLE_POLL_INTERVAL_MS,
    help: 'While nothing is active: milliseconds between calls of getInferenceRequests and pollStopSignals.',
  }),
  /**
   * Iterations, in a row or not, that a request may wait before it goes ahead of all requests that came later, whatever
   * their priorities: against starvation. Default: no limit.
   */
  maxWaitIterations: ofServe(COUNT, {
    name: 'maxWaitIterations',
    default: 'no limit',
    flag: {
      group: 'Batching',
      unit: 'iterations',
      defaultText: 'no limit',
      help: 'After waiting this many iterations, a request goes before all later ones, whatever their priorities.',
    },
  }),
  /**
   * Most requests that wait inside the engine for their first step. At this number the engine asks for no more, and the
   * host decides which request comes next. Default: as many as there are places (maxNumSequences). Not with V1.
   */
  maxWaitingRequests: ofGptManager(COUNT, {
    default: 'maxNumSequences',
    help: 'Requests that may wait in the engine for their first step; beyond that the engine asks for no more.',
  }),
  /**
   * With MAX_UTILIZATION: a request starts only if it could generate this many tokens along with those
   * already running, which avoids starting, pausing and recomputing it. Default: a request starts if it fits
   * into one step.
   */
  startHorizon: ofServe(COUNT, {
    name: 'startHorizonTokens',
    default: 'one step',
    flag: {
      group: 'Batching',
      unit: 'tokens',
      formerly: 'startHorizon',
      defaultText: 'one step',
      help: 'Start a request only if this many output tokens fit (prevents thrashing). With MAX_UTILIZATION.',
    },
  }),
  /**
   * Bound on the time between two tokens of a generating request, in milliseconds: while anything generates, prompts
   * get only as many tokens of an iteration as there is time for, measured by recent iterations. Needs
   * enableChunkedContext. A generation that is slower by itself does not get faster. Default: no bound.
   */
  maxInterTokenLatencyMs: ofServe(COUNT, {
    name: 'maxInterTokenLatencyMs',
    default: 'no bound',
    flag: {
      group: 'Batching',
      unit: 'milliseconds',
      defaultText: 'no bound',
      help: 'Target for the time between two tokens of an answer; prompt chunks shrink to keep it. Needs chunked prefill.',
    },
  }),
  /**
   * Bound on the time that an iteration spends on prompts which it does not end, in milliseconds, measured by recent
   * iterations: a new request waits at most about this long for another's long prompt. The bound is four times as long
   * where there is no other request. Prompts that fit into it run whole, all prompts of an iteration together in at
   * most four times as long. Needs enableChunkedContext. 'auto': chosen to suit the executor
   * (engine/worker/create-loop.ts), less where few sequences generate, and more where an iteration takes longer without
   * any prompt. Default: no bound.
   */
  maxChunkMs: ofServe(
    {
      ...rule<number | 'auto'>(
        `auto, or ${COUNT.expected}`,
        (value) => value === 'auto' || COUNT.accepts(value),
      ),
      most: MAX_INT32,
    },
    {
      name: 'maxChunkMs',
      plain: COUNT,
      default: 'no bound',
      flag: {
        group: 'Batching',
        unit: 'milliseconds',
        defaultText: chunkMsText(),
        help: 'Time budget per iteration for prompt chunks. Lower: answers under way wait less for prompts; higher: prompts finish sooner. Needs chunked prefill.',
      },
    },
  ),
  /**
   * Source of drafts, tokens proposed to come next, so that one step can give a sequence several tokens. Answers do not
   * change. ngram: where a sequence's last tokens occurred in it before, the tokens that followed are proposed (prompt
   * lookup); good for answers that repeat their prompt, such as edited code and summaries. mtp: the head that Qwen3.5 and
   * Qwen3-Next have for it ("multi-token prediction") draws them; on the native executor alone, not with
   * enableTrtOverlap, draftEnginePath or ranks. Default none. Not with V1.
   */
  speculate: ofServe(oneOf('none', 'ngram', 'mtp') satisfies Values<Speculate>, {
    name: 'speculate',
    default: 'none',
    flag: {
      group: 'Speculation',
      default: 'none',
      isForAsking: true,
      help: 'Speculative decoding without a draft model; output is unchanged. ngram: proposes what followed the same tokens before. mtp: by the head that Qwen3.5 and Qwen3-Next have for it.',
    },
  }),
  /**
   * Path of the engine directory of a smaller model with the same tokenizer, which drafts tokens where nothing else
   * proposes any. Answers do not change. Its KV cache holds as many tokens as the engine's and comes out of the same
   * memory. Default: none. Not with V1, enableTrtOverlap or executorModule.
   */
  draftEnginePath: ofServe(
    { ...NAME, expected: 'the path of an engine directory' },
    {
      name: 'draftModel',
      plain: NAME,
      default: 'none',
      flag: {
        group: 'Speculation',
        metavar: 'PATH',
        defaultText: 'none',
        isForAsking: true,
        help: 'Draft model for speculative decoding; output is unchanged.',
      },
    },
  ),
  /** Most tokens of a draft; default 16, or 8 where layers keep states. The actual length depends on how often drafts are right and on the load. */
  maxDraftLen: ofServe(COUNT, {
    name: 'maxDraftTokens',
    seedName: 'max_draft_len',
    default: DEFAULT_MAX_DRAFT_LEN,
    flag: {
      group: 'Speculation',
      unit: 'tokens',
      formerly: 'maxDraftLen',
      defaultText: String(DEFAULT_MAX_DRAFT_LEN),
      isForAsking: true,
      help: 'Most draft tokens per step; the actual number adapts. Models with a state: 8 by default.',
    },
  }),
  /** Format of the statistics string for returnBatchManagerStats; default BatchManager. */
  statsFormat: ofGptManager(oneOf('BatchManager', 'IterationStats') satisfies Values<StatsFormat>, {
    default: 'BatchManager',
    help: 'Form of the statistics string: BatchManager or IterationStats.',
  }),
  /**
   * Milliseconds without a finished iteration, while something is active, after which the worker counts as
   * stuck: what is active fails and the worker is restarted. Must exceed the longest iteration. Default 600
   * 000; 0 = never.
   */
  watchdogTimeoutMs: ofServe(MS, {
    name: 'watchdogTimeoutSeconds',
    plain: wholeNumber(0, 86_400),
    toField: (seconds) => 1000 * seconds,
    default: DEFAULT_WATCHDOG_TIMEOUT_MS,
    flag: {
      group: 'Running',
      unit: 'seconds',
      formerly: 'watchdogTimeout',
      default: DEFAULT_WATCHDOG_TIMEOUT_MS / 1000,
      help: 'Restart an engine that finishes no iteration for this long. 0: never.',
    },
  }),
  /**
   * Milliseconds that a worker may take to end when asked to, since nothing can interrupt a native call.
   * After that the manager gives up with a WorkerStuckError. Default 60 000.
   */
  terminateTimeoutMs: ofGptManager(MS, {
    default: DEFAULT_TERMINATE_TIMEOUT_MS,
    help: 'Milliseconds that a worker has for ending after it was told to.',
  }),
  /**
   * Runs the engine in a process of its own instead of a thread, so that a crash in native code ends that
   * process alone: its requests fail, once each, and another process is started as after any death of a
   * worker. BENCHMARKS.md gives the cost. Engines in processes take no turns with others: computeWeight is
   * refused. Default false.
   */
  isolate: ofServe(SWITCH, {
    name: 'isolate',
    default: false,
    flag: {
      group: 'Models',
      default: false,
      help: 'Run each engine in its own process: a crash in native code ends neither the server nor other models.',
    },
  }),
  /**
   * Ranks that share each layer of the model, with the same answers, bit for bit, as one. Without `ranks` in the manager's options it
   * starts the others as processes of this machine. Native executor. Default 1.
   */
  tensorParallelSize: ofServe(wholeNumber(1, 64), {
    name: 'tensorParallelSize',
    default: 1,
    flag: {
      group: 'Running',
      metavar: 'N',
      default: 1,
      help: 'Processes that share each layer of the model, each with its own threads. Answers are those of one process.',
    },
  }),
  /**
   * Stages that each have a part of the layers; times tensorParallelSize it is the number of ranks. As many micro-batches take turns, so
   * that all stages compute. Default 1.
   */
  pipelineParallelSize: ofServe(wholeNumber(1, 64), {
    name: 'pipelineParallelSize',
    default: 1,
    flag: {
      group: 'Running',
      metavar: 'N',
      default: 1,
      help: 'Stages: processes that each have a part of the layers and compute for different requests at the same time. Answers are those of one process.',
    },
  }),
  /**
   * Milliseconds that a rank waits for another one, which may be stopped or far away, before the group counts
   * as lost: what is active fails and all ranks restart. Default 30 000.
   */
  rankTimeoutMs: ofServe(wholeNumber(1, 86_400_000), {
    name: 'rankTimeoutSeconds',
    plain: wholeNumber(1, 86_400),
    toField: (seconds) => 1000 * seconds,
    default: DEFAULT_RANK_TIMEOUT_MS,
    flag: {
      group: 'Running',
      unit: 'seconds',
      default: DEFAULT_RANK_TIMEOUT_MS / 1000,
      help: 'How long a rank waits for another one before all of them are started again.',
    },
  }),
  /**
   * Waits and limits for replacing a worker that died; false: no replacement. The first start is not covered: its
   * failure rejects `ready`.
   */
  workerRestart: ofPrograms(
    rule<WorkerRestartOptions | false>('false or an object of waits and limits', isWorkerRestart),
    {
      name: 'workerRestart',
      default: 'after 250 ms, then each time twice as long',
      help: 'How a dead worker is replaced; false: not at all.',
    },
  ),
  /** Checks the KV cache's invariants after every iteration. Slow; meant for tests. */
  checkIntegrity: ofGptManager(SWITCH, {
    default: false,
    help: "Checks the KV cache's invariants after every iteration; slow, for tests.",
  }),
  /**
   * URL of a module that exports `loadExecutor` as engine/worker/load-executor.ts does, for an executor of one's own.
   * The worker imports the module and passes it all of these parameters, unknown ones included.
   */
  executorModule: ofPrograms(MODULE_URL, {
    name: 'executorModule',
    default: 'none',
    help: 'URL of a module with a custom executor.',
  }),
  /**
   * URL of a module with logits post-processors, which requests name (logits_post_processor_name): see
   * LogitsPostProcessorModule. The worker imports it. Refused with V1. With enableTrtOverlap a micro-batch that has
   * such requests runs in the loop's own thread.
   */
  logitsPostProcessorModule: ofPrograms(MODULE_URL, {
    name: 'logitsPostProcessorModule',
    default: 'none',
    help: 'URL of a module with logits post-processors, which requests name.',
  }),
  /**
   * Milliseconds that one call of a post-processor may take; a call that took longer ends its request. Default 1000.
   */
  logitsPostProcessorTimeoutMs: ofGptManager(numberIn({ min: 1, max: MAX_INT32, integer: false }), {
    default: DEFAULT_LOGITS_POST_PROCESSOR_TIMEOUT_MS,
    help: 'Milliseconds that one call of a post-processor may take.',
  }),
};
