import type { KvCacheConfig, ModelType, OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { checkWorkerRestart } from '../../callbacks/restart-policy.js';
import { checkRange, ParameterError } from '../../callbacks/sampling-params.js';
import type { AttentionWindow } from '../../kvcache/attention-window.js';
import type { AvailableMemory } from '../../kvcache/available-memory.js';
import { resolveWindow } from '../../kvcache/kv-cache-options.js';
import { kvCacheSize } from '../../kvcache/kv-cache-size.js';
import type { ModelConfig } from '../../models/model-config.js';
import { CHUNKING_POLICIES, type MicroBatchLimits } from '../../scheduler/types.js';
import { type PaddingRoom, paddingRoom } from '../schemes/padding-room.js';
import { checkExecutor } from './check-executor.js';

export const DEFAULT_MAX_NUM_SEQUENCES = 64;
export const DEFAULT_MAX_NUM_TOKENS = 2048;
export const DEFAULT_KV_FRACTION = 0.9;
export const DEFAULT_IDLE_POLL_INTERVAL_MS = 20;
export const DEFAULT_WATCHDOG_TIMEOUT_MS = 600_000;
export const DEFAULT_TERMINATE_TIMEOUT_MS = 60_000;
export const DEFAULT_LOGITS_POST_PROCESSOR_TIMEOUT_MS = 1000;
export const DEFAULT_MAX_RETURNED_LOGITS_BYTES = 512 * 2 ** 20;
export const DEFAULT_MAX_DRAFT_LEN = 16;
/**
 * Rows of logits for draft tokens, of all sequences of a step together. On a CPU more rows than these cost their full
 * share of the time, and then a draft is worth nothing.
 */
const MAX_DRAFT_ROWS = 32;
const DEFAULT_TOKENS_PER_BLOCK = 32;

/** The sizes that an engine runs with: its own limits, lowered and completed by the optional parameters. */
export interface EngineLimits {
  maxInputLen: number;
  maxSeqLen: number;
  maxNumSequences: number;
  /** null: as many as the vocabulary has tokens. */
  maxTopLogProbs: number | null;
  maxReturnedLogitsBytes: number;
  tokensPerBlock: number;
  /** null: a token attends to all before it. */
  window: AttentionWindow | null;
  microBatch: MicroBatchLimits & { maxSequences: number };
  /** Rows of logits that an executor needs for drafts, beside one for each sequence. */
  maxDraftRows: number;
  /** What an executor needs beyond maxBatchSize sequences and the pool's blocks. */
  padding: PaddingRoom;
}

/** Checks the optional parameters that need no engine; throws ParameterError naming field, value and limit. */
export function checkOptionalParams(params: OptionalParams, modelType: ModelType): void {
  const { kvCacheConfig = {} } = params;
  if (modelType === 'V1' && params.enableChunkedContext) {
    throw refused(
      'enableChunkedContext',
      'V1 runs prompts whole; use an in-flight modelType or leave it out',
    );
  }
  if (modelType === 'V1' && kvCacheConfig.enableBlockReuse) {
    throw refused(
      'kvCacheConfig.enableBlockReuse',
      'V1 computes every prompt whole; use an in-flight modelType or leave it out',
    );
  }
  if (modelType === 'V1' && params.enableTrtOverlap) {
    throw refused(
      'enableTrtOverlap',
      'V1 runs one batch in lockstep and has no second micro-batch; use an in-flight modelType or leave it out',
    );
  }
  if (modelType === 'V1' && params.logitsPostProcessorModule !== undefined) {
    throw refused(
      'logitsPostProcessorModule',
      'V1 has no logits post-processors; use an in-flight modelType or leave it out',
    );
  }
  if (modelType === 'V1' && params.maxWaitingRequests !== undefined) {
    throw refused(
      'maxWaitingRequests',
      'V1 makes its batches of those that wait; use an in-flight modelType or leave it out',
    );
  }
  checkSpeculation(params, modelType);
  checkDraftModel(params, modelType);
  checkExecutor(params);
  const { logitsPostProcessorTimeoutMs: limitMs } = params;
  if (limitMs !== undefined) {
    checkRange('logitsPostProcessorTimeoutMs', limitMs, { min: 1, max: 2 ** 31 - 1, integer: false });
  }
  checkChunking(params);
  checkCount('kvCacheConfig.maxTokens', kvCacheConfig.maxTokens);
  checkSecondaryPool(kvCacheConfig);
  checkCount('kvCacheConfig.maxAttentionWindow', kvCacheConfig.maxAttentionWindow);
  checkSinks(kvCacheConfig.sinkTokenLength, kvCacheConfig.maxAttentionWindow ?? 2 ** 31);
  const events = kvCacheConfig.eventBufferMaxSize;
  if (events !== undefined) {
    checkRange('kvCacheConfig.eventBufferMaxSize', events, { min: 0, max: 1_000_000, integer: true });
  }
  const fraction = kvCacheConfig.freeGpuMemoryFraction;
  if (fraction !== undefined && !(fraction > 0 && fraction <= 1)) {
    throw new ParameterError(
      'kvCacheConfig.freeGpuMemoryFraction',
      `kvCacheConfig.freeGpuMemoryFraction is ${fraction}; it must be above 0 and at most 1.`,
    );
  }
  for (const field of [
    'maxNumSequences',
    'maxBatchSize',
    'minMicroBatchSize',
    'maxNumTokens',
    'maxInputLen',
    'maxSeqLen',
    'maxWaitIterations',
    'maxWaitingRequests',
    'startHorizon',
    'maxInterTokenLatencyMs',
  ] as const) {
    checkCount(field, params[field]);
  }
  if (params.maxChunkMs !== 'auto') checkCount('maxChunkMs', params.maxChunkMs);
  const { statsFormat = 'BatchManager' } = params;
  if (statsFormat !== 'BatchManager' && statsFormat !== 'IterationStats') {
    throw new ParameterError(
      'statsFormat',
      `statsFormat is ${String(statsFormat)}; it must be BatchManager or IterationStats.`,
    );
  }
  checkCount('threads', params.threads);
  if (params.availableMemory !== undefined) {
    const { bytes } = params.availableMemory;
    checkRange('availableMemory.bytes', bytes, { min: 0, max: Number.MAX_SAFE_INTEGER, integer: true });
  }
  if (params.computeWeight !== undefined) {
    checkRange('computeWeight', params.computeWeight, { min: 1, max: 1000, integer: true });
  }
  checkWorkerRestart(params.workerRestart);
  for (const field of ['watchdogTimeoutMs', 'terminateTimeoutMs'] as const) {
    const value = params[field];
    if (value !== undefined) checkRange(field, value, { min: 0, max: 2 ** 31 - 1, integer: true });
  }
  checkTokensPerBlock(params.tokensPerBlock);
  if (params.maxTopLogProbs !== undefined) {
    checkRange('maxTopLogProbs', params.maxTopLogProbs, { min: 0, max: 2 ** 31 - 1, integer: true });
  }
  const { maxReturnedLogitsBytes } = params;
  if (maxReturnedLogitsBytes !== undefined) {
    const range = { min: 0, max: Number.MAX_SAFE_INTEGER, integer: true };
    checkRange('maxReturnedLogitsBytes', maxReturnedLogitsBytes, range);
  }
}

function checkChunking({ enableChunkedContext, chunkingPolicy, ...params }: OptionalParams): void {
  for (const field of ['maxInterTokenLatencyMs', 'maxChunkMs'] as const) {
    if (params[field] === undefined || enableChunkedContext) continue;
    throw refused(
      field,
      'only prompts that run in chunks can be kept short; turn enableChunkedContext on or leave this out',
    );
  }
  if (chunkingPolicy === undefined) return;
  if (!CHUNKING_POLICIES.includes(chunkingPolicy)) {
    throw new ParameterError(
      'chunkingPolicy',
      `chunkingPolicy is ${String(chunkingPolicy)}; it must be one of ${CHUNKING_POLICIES.join(', ')}.`,
    );
  }
  if (!enableChunkedContext) {
    throw refused(
      'chunkingPolicy',
      'without enableChunkedContext there are no chunks; turn it on or leave this out',
    );
  }
}

function checkSpeculation({ speculate = 'none', maxDraftLen }: OptionalParams, modelType: ModelType): void {
  if (speculate !== 'none' && speculate !== 'ngram') {
    throw new ParameterError('speculate', `speculate is ${String(speculate)}; it must be none or ngram.`);
  }
  if (modelType === 'V1' && speculate !== 'none') {
    throw refused(
      'speculate',
      'V1 draws one token a step for each slot of its batch; use an in-flight modelType or leave it out',
    );
  }
  checkCount('maxDraftLen', maxDraftLen);
}

function checkDraftModel(params: OptionalParams, modelType: ModelType): void {
  const { draftEnginePath: path, enableTrtOverlap, executorModule } = params;
  if (path === undefined) return;
  if (typeof path !== 'string' || path === '') {
    throw new ParameterError(
      'draftEnginePath',
      `draftEnginePath is ${String(path) || 'empty'}; the path of an engine directory is expected.`,
    );
  }
  if (modelType === 'V1') {
    throw refused(
      'draftEnginePath',
      'V1 draws one token a step for each slot of its batch; use an in-flight modelType or leave it out',
    );
  }
  if (enableTrtOverlap) {
    throw refused(
      'draftEnginePath',
      'with enableTrtOverlap the draft model would run beside the other micro-batch, on the same threads; leave one of them out',
    );
  }
  if (executorModule !== undefined) {
    throw refused(
      'draftEnginePath',
      'an executor of your own runs no draft models; leave it or executorModule out',
    );
  }
}

function checkSecondaryPool(config: KvCacheConfig): void {
  const { hostCacheSize, secondaryOffloadMinPriority: priority } = config;
  if (hostCacheSize !== undefined) {
    const range = { min: 0, max: Number.MAX_SAFE_INTEGER, integer: true };
    checkRange('kvCacheConfig.hostCacheSize', hostCacheSize, range);
  }
  if (hostCacheSize && !config.enableBlockReuse) {
    throw refused(
      'kvCacheConfig.hostCacheSize',
      'without enableBlockReuse no block is kept that could be swapped out; turn it on or leave this out',
    );
  }
  if (priority !== undefined) {
    checkRange('kvCacheConfig.secondaryOffloadMinPriority', priority, { min: 0, max: 100, integer: true });
  }
}

/** Lowers the engine's limits to what is asked for and fills in the rest. */
export function resolveLimits(
  params: OptionalParams,
  engine: {
    maxInputLen: number;
    maxSeqLen: number;
    config?: Pick<ModelConfig, 'slidingWindow' | 'layerWindows'>;
  },
  modelType: ModelType = 'InflightFusedBatching',
  maxBeamWidth = 1,
): EngineLimits {
  const maxSeqLen = lowered('maxSeqLen', params.maxSeqLen, engine.maxSeqLen);
  const maxInputLen = Math.min(lowered('maxInputLen', params.maxInputLen, engine.maxInputLen), maxSeqLen);
  const maxNumSequences = params.maxNumSequences ?? DEFAULT_MAX_NUM_SEQUENCES;
  const maxBatchSize = Math.min(params.maxBatchSize ?? maxNumSequences, maxNumSequences);
  const tokensPerBlock = params.tokensPerBlock ?? DEFAULT_TOKENS_PER_BLOCK;
  const maxSequences = maxBatchSize * maxBeamWidth;
  const longestStep = params.enableChunkedContext ? maxSequences : Math.max(maxInputLen, maxSequences);
  const maxNumTokens = params.maxNumTokens ?? Math.max(DEFAULT_MAX_NUM_TOKENS, longestStep);
  const chunking = params.enableChunkedContext && {
    policy: params.chunkingPolicy ?? ('FIRST_COME_FIRST_SERVED' as const),
    unit: tokensPerBlock,
  };
  return {
    maxInputLen,
    maxSeqLen,
    maxNumSequences,
    maxTopLogProbs: params.maxTopLogProbs ?? null,
    maxReturnedLogitsBytes: params.maxReturnedLogitsBytes ?? DEFAULT_MAX_RETURNED_LOGITS_BYTES,
    tokensPerBlock,
    window: windowOf(params, engine.config ?? { slidingWindow: null }, { maxSeqLen, tokensPerBlock }),
    microBatch: { maxBatchSize, maxNumTokens, maxSequences, ...(chunking ? { chunking } : {}) },
    maxDraftRows: modelType === 'V1' ? 0 : Math.min(MAX_DRAFT_ROWS, maxNumTokens),
    padding: paddingRoom(modelType, { maxSequences, maxNumTokens, tokensPerBlock }),
  };
}

function windowOf(
  { kvCacheConfig = {} }: OptionalParams,
  { slidingWindow, layerWindows }: Pick<ModelConfig, 'slidingWindow' | 'layerWindows'>,
  sizes: { maxSeqLen: number; tokensPerBlock: number },
): AttentionWindow | null {
  const { maxAttentionWindow: asked, sinkTokenLength = 0 } = kvCacheConfig;
  if (asked !== undefined && slidingWindow !== null && asked > slidingWindow) {
    throw new ParameterError(
      'kvCacheConfig.maxAttentionWindow',
      `kvCacheConfig.maxAttentionWindow is ${asked}; the model attends to at most ${slidingWindow} tokens.`,
    );
  }
  const maxAttentionWindow = asked ?? slidingWindow ?? undefined;
  checkSinks(sinkTokenLength, maxAttentionWindow);
  if (sinkTokenLength > 0 && layerWindows !== undefined) {
    throw refused(SINKS, 'layers of this model have windows of their own, in which there are no sinks');
  }
  return resolveWindow({ ...sizes, maxAttentionWindow, sinkTokenLength });
}

const SINKS = 'kvCacheConfig.sinkTokenLength';

/** `window`: undefined where there is none. */
function checkSinks(sinkTokenLength: number | undefined, window: number | undefined): void {
  if (sinkTokenLength === undefined || sinkTokenLength === 0) return;
  const field = SINKS;
  if (window === undefined) {
    throw refused(field, 'there is no attention window for sinks to be in; give maxAttentionWindow too');
  }
  checkRange(field, sinkTokenLength, { min: 0, max: window - 1, integer: true });
}

export interface KvBudget {
  limits: EngineLimits;
  /** Bytes of keys and values of one block in all layers. */
  bytesPerBlock: number;
  /** The same of a draft model, which has a pool of as many blocks; absent or 0: there is none. */
  draftBytesPerBlock?: number;
  /** What could still be taken once everything else is loaded. */
  available: AvailableMemory;
}

/** Blocks of the secondary pool: as many as hostCacheSize has room for. Throws where it has room for none. */
export function secondaryBlocks({ kvCacheConfig = {} }: OptionalParams, bytesPerBlock: number): number {
  const { hostCacheSize = 0 } = kvCacheConfig;
  if (hostCacheSize === 0 || hostCacheSize >= bytesPerBlock) return Math.floor(hostCacheSize / bytesPerBlock);
  throw new ParameterError(
    'kvCacheConfig.hostCacheSize',
    `kvCacheConfig.hostCacheSize is ${hostCacheSize}; one KV cache block takes ${bytesPerBlock} bytes.`,
  );
}

/**
 * Blocks of the KV pool: see kvCacheSize, which throws with the numbers where not even one sequence fits. What padding
 * and the secondary pool take is not available.
 *
 *   available   [ padding | secondary pool | freeGpuMemoryFraction of the rest: the pool | left free ]
 *
 * With a draft model the pool is two of as many blocks: both hold the same tokens.
 */
export function kvBlocks(
  params: OptionalParams,
  { limits, bytesPerBlock, draftBytesPerBlock = 0, available }: KvBudget,
): number {
  const { maxTokens, freeGpuMemoryFraction = DEFAULT_KV_FRACTION } = params.kvCacheConfig ?? {};
  const paddingBytes = limits.padding.blocks * bytesPerBlock;
  const secondaryBytes = secondaryBlocks(params, bytesPerBlock) * bytesPerBlock;
  const padding = paddingBytes === 0 ? '' : `, less ${paddingBytes} bytes for padding`;
  const secondary = secondaryBytes === 0 ? '' : `, less ${secondaryBytes} bytes of hostCacheSize`;
  return kvCacheSize({
    availableBytes: Math.max(0, available.bytes - paddingBytes - secondaryBytes),
    availableFrom: `${available.from}${padding}${secondary}`,
    freeMemoryFraction: freeGpuMemoryFraction,
    bytesPerBlock: bytesPerBlock + draftBytesPerBlock,
    tokensPerBlock: limits.tokensPerBlock,
    ...(maxTokens === undefined ? {} : { maxTokens }),
    maxNumSequences: limits.maxNumSequences,
    maxSeqLen: limits.maxSeqLen,
    window: limits.window,
  }).numBlocks;
}

function lowered(field: string, asked: number | undefined, engine: number): number {
  if (asked === undefined) return engine;
  if (asked <= engine) return asked;
  throw new ParameterError(field, `${field} is ${asked}; the engine was built for at most ${engine}.`);
}

/** The kernels walk the cache in steps that whole blocks of these sizes fill. */
function checkTokensPerBlock(value: number | undefined): void {
  if (value === undefined || (value >= 8 && Number.isInteger(Math.log2(value)))) return;
  throw new ParameterError(
    'tokensPerBlock',
    `tokensPerBlock is ${value}; a power of two of at least 8 is expected.`,
  );
}

function checkCount(field: string, value: number | undefined): void {
  if (value !== undefined) checkRange(field, value, { min: 1, max: 2 ** 31 - 1, integer: true });
}

function refused(field: string, why: string): ParameterError {
  return new ParameterError(field, `${field} is refused: ${why}.`);
}
