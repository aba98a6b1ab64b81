import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import {
  BATCH_BUCKETS,
  CHOICE_BUCKETS,
  FIRST_TOKEN_BUCKETS,
  ITERATION_BUCKETS,
  ITERATION_TOKEN_BUCKETS,
  LATENCY_BUCKETS,
  TOKEN_BUCKETS,
  tokenCountBuckets,
} from './buckets.js';

/** Labels of every metric of a model. `engine` is '0': each model has one engine. */
export const MODEL_LABELS = ['model_name', 'engine'] as const;
export type ModelLabels = Record<(typeof MODEL_LABELS)[number], string>;
export const modelLabels = (model: string): ModelLabels => ({ model_name: model, engine: '0' });

/** vLLM's histograms of seconds: the name without prefix and _seconds, a description, the buckets. */
const SECONDS = {
  firstToken: ['time_to_first_token', 'Arrival to the first token', FIRST_TOKEN_BUCKETS],
  interToken: ['inter_token_latency', 'Between two tokens of a request', TOKEN_BUCKETS],
  // Dashboards for vLLM before 0.11 read this for the same.
  perOutputToken: ['time_per_output_token', 'Between two tokens of a request', TOKEN_BUCKETS],
  perToken: [
    'request_time_per_output_token',
    'Mean time of a token after the first, per request',
    TOKEN_BUCKETS,
  ],
  latency: ['e2e_request_latency', 'Arrival to the last token', LATENCY_BUCKETS],
  decodeTime: ['request_decode_time', 'First token to the last', LATENCY_BUCKETS],
  queueTime: ['request_queue_time', 'Arrival to the first scheduling', LATENCY_BUCKETS],
  prefillTime: ['request_prefill_time', 'First scheduling to the first token', LATENCY_BUCKETS],
  inferenceTime: ['request_inference_time', 'First scheduling to the last token', LATENCY_BUCKETS],
} as const;

/** vLLM's histograms of tokens, with buckets up to the longest sequence. */
const LENGTHS = {
  promptLength: ['request_prompt_tokens', 'Prompt tokens per request'],
  generatedLength: ['request_generation_tokens', 'Tokens generated per request'],
  maxTokens: ['request_max_num_generation_tokens', 'Tokens asked for per request'],
  maxTokensParam: ['request_params_max_tokens', 'Tokens asked for per request'],
  computedLength: [
    'request_prefill_kv_computed_tokens',
    'Prompt tokens per request that were not in the cache',
  ],
} as const;

/** Further histograms, with their prefix. */
const COUNTS = {
  iterationTokens: ['vllm:iteration_tokens_total', 'Tokens per iteration', ITERATION_TOKEN_BUCKETS],
  choices: ['vllm:request_params_n', 'Answers asked for per prompt', CHOICE_BUCKETS],
  iterationTime: [
    'skein:iteration_duration_seconds',
    'Iterations of the loop, in seconds',
    ITERATION_BUCKETS,
  ],
  batchRequests: ['skein:iteration_requests', 'Requests in an iteration', BATCH_BUCKETS],
  batchContexts: ['skein:iteration_context_requests', 'Of them those that run their prompt', BATCH_BUCKETS],
} as const;

const COUNTERS = {
  promptTokens: ['vllm:prompt_tokens_total', 'Prompt tokens of accepted requests'],
  cachedTokens: [
    'vllm:prompt_tokens_cached_total',
    'Prompt tokens found in the cache when their request began',
  ],
  generatedTokens: ['vllm:generation_tokens_total', 'Tokens generated'],
  preemptions: ['vllm:num_preemptions_total', 'Times that a request was paused'],
  prefixQueries: ['vllm:prefix_cache_queries_total', 'Prompt tokens looked for in the prefix cache'],
  prefixHits: ['vllm:prefix_cache_hits_total', 'Prompt tokens found in the prefix cache'],
  // Dashboards for vLLM before 0.11 read these.
  gpuPrefixQueries: ['vllm:gpu_prefix_cache_queries_total', 'Prompt tokens looked for in the prefix cache'],
  gpuPrefixHits: ['vllm:gpu_prefix_cache_hits_total', 'Prompt tokens found in the prefix cache'],
  drafts: ['vllm:spec_decode_num_drafts_total', 'Drafts verified, one a request and iteration'],
  draftedTokens: ['vllm:spec_decode_num_draft_tokens_total', 'Tokens of drafts verified'],
  acceptedTokens: ['vllm:spec_decode_num_accepted_tokens_total', 'Tokens of drafts accepted'],
  restarts: ['skein:engine_restarts_total', 'Times that the engine was started again after it had died'],
  resumed: [
    'skein:requests_resumed_total',
    'Times that a request went on in an engine that was started again after the one before had died with it',
  ],
  iterations: ['skein:iterations_total', 'Iterations of the loop'],
  executorTime: ['skein:executor_seconds_total', 'Seconds spent inside the executor'],
  waitedTime: ['skein:executor_wait_seconds_total', 'Seconds of them spent waiting for other models'],
  expertReadBytes: [
    'skein:expert_read_bytes_total',
    'Bytes of experts that tokens went to and that were not in memory; 0 where memory holds all weights',
  ],
  contextTokens: ['skein:context_tokens_total', 'Prompt tokens computed, those after a pause too'],
  reusedBlocks: ['skein:kv_blocks_reused_total', 'Full blocks of prompts found in the cache'],
  missedBlocks: ['skein:kv_blocks_missed_total', 'Full blocks of prompts that could have been in the cache'],
  swappedOut: ['skein:kv_blocks_swapped_out_total', 'Blocks moved to the secondary pool'],
  swappedIn: ['skein:kv_blocks_swapped_in_total', 'Blocks moved back from the secondary pool'],
  stateHits: ['skein:state_hits_total', 'Prompts that began with a snapshot of states'],
  stateLosses: [
    'skein:state_losses_total',
    'Prompts that computed cached blocks again for want of a snapshot',
  ],
  diskHits: ['skein:kv_disk_blocks_read_total', 'Blocks of prompts brought from the folder of --disk-cache'],
  diskMisses: [
    'skein:kv_disk_blocks_missed_total',
    'Full blocks of prompts that neither the cache nor the folder had',
  ],
  diskReadBytes: ['skein:kv_disk_read_bytes_total', 'Bytes of the blocks brought from the folder'],
  diskWritten: ['skein:kv_disk_blocks_written_total', 'Blocks written to the folder'],
  diskDamaged: ['skein:kv_disk_damaged_files_total', 'Files of the folder that were damaged, and removed'],
  diskErrors: ['skein:kv_disk_errors_total', 'Reads and writes of the folder that failed'],
  guided: ['skein:guided_requests_total', 'Requests whose answer follows a grammar'],
} as const;

const GAUGES = {
  running: ['vllm:num_requests_running', 'Requests in the batch'],
  waiting: ['vllm:num_requests_waiting', 'Requests that wait for a place in it'],
  cacheUsage: ['vllm:kv_cache_usage_perc', 'Share of KV cache blocks in use, 0 to 1'],
  stateSlots: ['skein:state_slots', 'Slots for the states of sequences; 0 for models without states'],
  stateSlotsUsed: ['skein:state_slots_used', 'Slots that sequences hold'],
  stateSnapshots: ['skein:state_snapshots', 'Snapshots of states that there is room for'],
  diskFiles: ['skein:kv_disk_files', 'Files in the folder of --disk-cache; 0 without one'],
  diskBytes: ['skein:kv_disk_bytes', 'Bytes of these files'],
  diskMaxBytes: ['skein:kv_disk_max_bytes', 'Bytes that they may have'],
  stateSnapshotsKept: ['skein:state_snapshots_kept', 'Snapshots of states kept for later prompts'],
  // Dashboards for vLLM before 0.10 read this for the same.
  gpuCacheUsage: ['vllm:gpu_cache_usage_perc', 'Share of KV cache blocks in use, 0 to 1'],
  // Dashboards for vLLM before 0.9 read these two.
  swapped: ['vllm:num_requests_swapped', 'Requests that are paused, and run again when there is room'],
  cpuCacheUsage: ['vllm:cpu_cache_usage_perc', 'Share of secondary KV cache blocks in use, 0 to 1'],
  ready: ['skein:engine_ready', '1 where the engine runs, 0 where it is being restarted or has failed'],
  ranks: ['skein:ranks', 'Processes that run the model together, where there are several'],
  ranksMissing: ['skein:ranks_missing', 'Of them those that are waited for'],
  queueLimit: ['skein:queue_limit', 'Requests that may wait'],
  blockTokens: ['skein:kv_block_tokens', 'Tokens of a KV cache block'],
} as const;

/** Metrics with another label. */
const LABELLED = {
  success: [Counter, 'vllm:request_success_total', 'Requests that ended, by reason', 'finished_reason'],
  /** Why requests wait, as vLLM's dashboards distinguish it. */
  waitingByReason: [
    Gauge,
    'vllm:num_requests_waiting_by_reason',
    'Requests that wait for a place in the batch, by reason',
    'reason',
  ],
  /** 1 for the state of the engine: it is awake, or has no series. */
  sleepState: [
    Gauge,
    'vllm:engine_sleep_state',
    'An engine that runs is awake; one that is being restarted or has failed has no state',
    'sleep_state',
  ],
  /** From 0 on. */
  acceptedByPosition: [
    Counter,
    'vllm:spec_decode_num_accepted_tokens_per_pos_total',
    'Tokens of drafts accepted, by their place in the draft',
    'position',
  ],
  promptSources: [
    Counter,
    'vllm:prompt_tokens_by_source_total',
    'Prompt tokens of requests that have a first token: computed, or found in the cache',
    'source',
  ],
  /** The memory that held them when their request began. */
  cachedSources: [
    Counter,
    'vllm:prompt_tokens_cached_by_source_total',
    'Prompt tokens found in the cache, by the memory that they are read from',
    'source',
  ],
  /** States: used, free, secondary_used, secondary_free. */
  blocks: [
    Gauge,
    'skein:kv_blocks',
    'KV cache blocks by state; free ones may hold what a prompt to come can reuse',
    'state',
  ],
} as const;

type Labelled = {
  readonly [Name in keyof typeof LABELLED]: (typeof LABELLED)[Name][0] extends typeof Gauge
    ? Gauge<keyof ModelLabels | (typeof LABELLED)[Name][3]>
    : Counter<keyof ModelLabels | (typeof LABELLED)[Name][3]>;
};

/** Labels that describe a model's KV cache. */
export type CacheLabels = ModelLabels &
  Record<'block_size' | 'num_gpu_blocks' | 'num_cpu_blocks' | 'cache_dtype', string>;

type Of<Names, M> = { readonly [Name in keyof Names]: M };

/** All metrics of models, each created once whatever the number of models. */
export type ModelFamilies = Of<typeof SECONDS, ModelHistogram> &
  Of<typeof LENGTHS, ModelHistogram> &
  Of<typeof COUNTS, ModelHistogram> &
  Of<typeof COUNTERS, Counter<keyof ModelLabels>> &
  Of<typeof GAUGES, Gauge<keyof ModelLabels>> &
  Labelled & {
    /** Only for engines in processes of their own. */
    processMemory: Gauge<keyof ModelLabels>;
    cacheConfig: Gauge<keyof CacheLabels>;
  };

type ModelHistogram = Histogram<keyof ModelLabels>;

/**
 * Creates the metrics of models. @param maxSeqLen longest sequence of any model: a histogram has the same buckets for
 * all models.
 */
export function modelFamilies(registry: Registry, maxSeqLen: number): ModelFamilies {
  const common = { labelNames: MODEL_LABELS, registers: [registry] };
  const histogram = (name: string, help: string, buckets: readonly number[]) =>
    new Histogram({ name, help, buckets: [...buckets], ...common });
  return {
    ...each(SECONDS, ([name, help, buckets]) =>
      histogram(`vllm:${name}_seconds`, `${help}, in seconds`, buckets),
    ),
    ...each(LENGTHS, ([name, help]) => histogram(`vllm:${name}`, help, tokenCountBuckets(maxSeqLen))),
    ...each(COUNTS, ([name, help, buckets]) => histogram(name, help, buckets)),
    ...each(COUNTERS, ([name, help]) => new Counter({ name, help, ...common })),
    ...each(GAUGES, ([name, help]) => new Gauge({ name, help, ...common })),
    ...(each(
      LABELLED,
      ([Metric, name, help, label]) =>
        new Metric({ name, help, labelNames: [...MODEL_LABELS, label], registers: [registry] }),
    ) as Labelled),
    processMemory: new Gauge({
      name: 'skein:engine_process_resident_memory_bytes',
      help: "Memory of an engine's own process (--isolate)",
      ...common,
    }),
    cacheConfig: new Gauge({
      name: 'vllm:cache_config_info',
      help: 'The KV cache, in labels',
      labelNames: [...MODEL_LABELS, 'block_size', 'num_gpu_blocks', 'num_cpu_blocks', 'cache_dtype'],
      registers: [registry],
    }),
  };
}

function each<Names extends object, M>(names: Names, make: (entry: Names[keyof Names]) => M): Of<Names, M> {
  const made = Object.entries(names).map(([key, entry]) => [key, make(entry as Names[keyof Names])]);
  return Object.fromEntries(made) as Of<Names, M>;
}
