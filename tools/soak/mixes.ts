import type { ModelType, OptionalParams, SchedulerPolicy } from 'skein';

/** A way to run the engine. Options that change an answer are apart from those that must not. */
export interface Mix {
  name: string;
  modelType: ModelType;
  schedulerPolicy: SchedulerPolicy;
  /** Precision of the weights; default bf16. */
  precision?: 'f32' | 'bf16' | 'int8' | 'int4';
  /** The same for the crowd and for the requests alone. */
  numerics?: OptionalParams;
  /** Options of the crowd only; an answer must not show any of them. */
  crowd: OptionalParams;
  /** Some requests ask for several sequences or beams, bring guides or drafts. */
  decodes?: true;
}

export const MAX_BEAM_WIDTH = 3;

const MAX_SEQ_LEN = 192;

/** Options that all mixes have in common. */
export const BASE: OptionalParams = {
  threads: 2,
  tokensPerBlock: 16,
  maxSeqLen: MAX_SEQ_LEN,
  maxNumSequences: 24,
  checkIntegrity: true,
  // A death is a failure here, and not something to recover from.
  workerRestart: false,
  watchdogTimeoutMs: 60_000,
};

/** Options for a request alone: room for it, nothing shared, nothing cut. */
export const ALONE: OptionalParams = { kvCacheConfig: { maxTokens: 4 * MAX_SEQ_LEN } };

/** Two and a half of the longest sequences, where 24 requests want in. */
const TINY_POOL = { maxTokens: 30 * 16 };
const CHUNKS: OptionalParams = { enableChunkedContext: true, maxNumTokens: 64 };

/** Add a line for each new option of the engine. */
export const MIXES: readonly Mix[] = [
  {
    name: 'fused, utilization, chunks, reuse',
    modelType: 'InflightFusedBatching',
    schedulerPolicy: 'MAX_UTILIZATION',
    crowd: { ...CHUNKS, kvCacheConfig: { ...TINY_POOL, enableBlockReuse: true } },
  },
  {
    name: 'fused, no evict, reuse, swap',
    modelType: 'InflightFusedBatching',
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    crowd: { kvCacheConfig: { ...TINY_POOL, enableBlockReuse: true, hostCacheSize: 2 ** 20 } },
  },
  {
    name: 'fused, utilization, chunks, reuse; several sequences, beams, guides, drafts',
    modelType: 'InflightFusedBatching',
    schedulerPolicy: 'MAX_UTILIZATION',
    crowd: { ...CHUNKS, speculate: 'ngram', kvCacheConfig: { maxTokens: 60 * 16, enableBlockReuse: true } },
    decodes: true,
  },
  {
    name: 'two calls, no evict, swap; several sequences, beams, guides, drafts',
    modelType: 'InflightBatching',
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    crowd: {
      speculate: 'ngram',
      kvCacheConfig: { maxTokens: 60 * 16, enableBlockReuse: true, hostCacheSize: 2 ** 20 },
    },
    decodes: true,
  },
  {
    name: 'two calls, utilization, equal chunks',
    modelType: 'InflightBatching',
    schedulerPolicy: 'MAX_UTILIZATION',
    crowd: { ...CHUNKS, chunkingPolicy: 'EQUAL_PROGRESS', kvCacheConfig: TINY_POOL },
  },
  {
    name: 'fused, utilization, reuse, int4 weights',
    modelType: 'InflightFusedBatching',
    schedulerPolicy: 'MAX_UTILIZATION',
    precision: 'int4',
    crowd: { kvCacheConfig: { ...TINY_POOL, enableBlockReuse: true } },
  },
  {
    name: 'lockstep',
    modelType: 'V1',
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    crowd: { maxBatchSize: 8, kvCacheConfig: TINY_POOL },
  },
  {
    name: 'fused, utilization, against starvation and thrashing, f32 cache',
    modelType: 'InflightFusedBatching',
    schedulerPolicy: 'MAX_UTILIZATION',
    numerics: { kvDtype: 'f32' },
    crowd: {
      ...CHUNKS,
      maxWaitIterations: 20,
      startHorizon: 8,
      kvCacheConfig: { ...TINY_POOL, enableBlockReuse: true, copyOnPartialReuse: false },
    },
  },
  {
    name: 'two micro-batches, utilization, chunks, reuse, swap',
    modelType: 'InflightFusedBatching',
    schedulerPolicy: 'MAX_UTILIZATION',
    crowd: {
      ...CHUNKS,
      enableTrtOverlap: true,
      minMicroBatchSize: 1,
      kvCacheConfig: { ...TINY_POOL, enableBlockReuse: true, hostCacheSize: 2 ** 20 },
    },
  },
  {
    name: 'two micro-batches, no evict, two calls',
    modelType: 'InflightBatching',
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    crowd: { enableTrtOverlap: true, minMicroBatchSize: 2, kvCacheConfig: TINY_POOL },
  },
  {
    name: 'a window, utilization, chunks, reuse',
    modelType: 'InflightFusedBatching',
    schedulerPolicy: 'MAX_UTILIZATION',
    numerics: { kvCacheConfig: { maxAttentionWindow: 50 } },
    crowd: { ...CHUNKS, kvCacheConfig: { ...TINY_POOL, enableBlockReuse: true } },
  },
  {
    name: 'a window with sinks, two micro-batches, no evict',
    modelType: 'InflightFusedBatching',
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    numerics: { kvCacheConfig: { maxAttentionWindow: 40, sinkTokenLength: 4 } },
    crowd: { ...CHUNKS, enableTrtOverlap: true, minMicroBatchSize: 1, kvCacheConfig: TINY_POOL },
  },
];
