import type { ModelType, StatsFormat } from '../../callbacks/gpt-manager-options.js';
import type { ExecutorMemory } from '../../callbacks/worker-messages.js';
import type { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import type { ModelConfig } from '../../models/model-config.js';
import type { ChunkMs, MicroBatchLimits, SchedulerPolicy } from '../../scheduler/tokens/types.js';
import type { RopeTable } from '../batch/rope-table.js';
import type { PostProcessors } from '../decoding/post-processors.js';
import type { DiskStore } from '../disk-cache/disk-messages.js';
import type { Executor } from '../executors/executor.js';
import type { GuideThread } from '../guided/guide-messages.js';
import type { LoopCallbacks } from '../intake/loop-callbacks.js';
import type { PeftCacheManager } from '../peft/peft-cache-manager.js';
import type { DraftPolicy } from '../speculation/draft-policy.js';

/** LoRA adapters of a loop's requests. */
export interface LoopAdapters {
  cache: PeftCacheManager;
  /** The base model that they change. */
  model: ModelConfig;
}

export interface LoopOptions {
  /** Default InflightFusedBatching. V1 needs an executor with room for padding: see paddingRoom. */
  modelType?: ModelType;
  schedulerPolicy: SchedulerPolicy;
  microBatch: MicroBatchLimits;
  /**
   * Two micro-batches take turns, so that the loop's work for one is hidden behind the forward of the other; default
   * false. Not with V1. With an executor of several stages as many take turns as there are stages, whatever this says.
   */
  enableTrtOverlap?: boolean;
  /**
   * Fewest requests of a micro-batch while another runs; default DEFAULT_MIN_MICRO_BATCH_SIZE, and 1 where
   * there are stages.
   */
  minMicroBatchSize?: number;
  /** Most requests that can be active at once. */
  maxNumSequences: number;
  maxInputLen: number;
  maxSeqLen: number;
  maxBeamWidth: number;
  /** Most top log-probs of a request; null: as many as the vocabulary has tokens. */
  maxTopLogProbs: number | null;
  /** See OptionalParams. */
  maxWaitIterations?: number | undefined;
  maxWaitingRequests?: number | undefined;
  startHorizon?: number | undefined;
  maxInterTokenLatencyMs?: number | undefined;
  /** What maxChunkMs means on the executor. */
  chunkMs?: ChunkMs | undefined;
  /** Most bytes that active requests may hold for logits to be returned; default DEFAULT_MAX_RETURNED_LOGITS_BYTES. */
  maxReturnedLogitsBytes?: number;
  /** See OptionalParams. */
  logitsPostProcessorTimeoutMs?: number | undefined;
  /** Default BatchManager. */
  statsFormat?: StatsFormat;
  /** A request with this id ends the loop once nothing is active. */
  terminateReqId?: bigint;
  /** Checks the KV cache after every iteration. */
  checkIntegrity?: boolean;
}

/** The loop's environment; tests bring their own. */
export interface LoopEnvironment {
  executor: Executor;
  kvCache: KvCacheManager;
  rope: RopeTable;
  callbacks: LoopCallbacks;
  /** Post-processors that requests can name; default: none. */
  postProcessors?: PostProcessors;
  /**
   * Source of drafts for sequences; default: none. Drafts use the rows of logits that the executor has beyond
   * maxBatchSize. Not with V1.
   */
  drafts?: DraftPolicy;
  /** Memory that the draft model takes besides the executor's, for the statistics; default: none. */
  draftMemory?: ExecutorMemory;
  /** Bytes of experts read from the disk since the start, those of a draft model included; default: none are. */
  expertReadBytes?: () => number;
  /** Caches of adapters; needs an executor with slots. Default: requests with adapters are refused. */
  adapters?: LoopAdapters;
  /** Where cached blocks are kept too, and the lowest retention priority of those; default: nowhere. */
  disk?: { store: DiskStore; minPriority: number };
  /** Thread that follows guides; default: requests with guides are refused. */
  guideThread?: GuideThread;
  /** Milliseconds since the epoch, monotonic. */
  clock: () => number;
  drawSeed: () => bigint;
}
