import { type NamedText, option, says } from '../../base/named-text.js';
import type { KvCacheConfig, ModelType, OptionalParams } from '../../callbacks/gpt-manager-options.js';
import { DEFAULT_KV_FRACTION } from '../../callbacks/options/kv-cache-options.js';
import {
  DEFAULT_MAX_DRAFT_LEN,
  DEFAULT_MAX_NUM_SEQUENCES,
  DEFAULT_MAX_NUM_TOKENS,
  DEFAULT_MAX_RETURNED_LOGITS_BYTES,
  DEFAULT_TOKENS_PER_BLOCK,
} from '../../callbacks/options/optional-params.js';
import { checkRange, ParameterError } from '../../callbacks/sampling-params.js';
import type { AttentionWindow } from '../../kvcache/attention-window.js';
import type { AvailableMemory } from '../../kvcache/available-memory.js';
import { resolveWindow } from '../../kvcache/kv-cache-options.js';
import { kvCacheSize } from '../../kvcache/kv-cache-size.js';
import type { ModelConfig } from '../../models/model-config.js';
import type { MicroBatchLimits } from '../../scheduler/tokens/types.js';
import { MAX_STEP_ROWS } from '../packed-call/call-limits.js';
import { type PaddingRoom, paddingRoom } from '../schemes/padding-room.js';
import { headProblem } from './check-head.js';
import { checkIsolation } from './check-isolation.js';
import { checkValues } from './check-values.js';
import { checkExecutor } from './option-effects.js';

/** Rows of logits for draft tokens, for all sequences of a step together, where only requests and guides bring drafts. */
const DRAFT_ROWS = 32;
/**
 * The same where the engine looks for drafts itself: this many for each sequence, since with long contexts
 * further rows cost a part of their share even in a full batch, as far as the limits on rows and on bytes of
 * logits allow.
 */
const DRAFT_ROWS_EACH = 4;
const MAX_DRAFT_ROWS = 256;
/** Default of maxDraftLen where layers keep states: each row of a draft takes memory in every sequence's slot. */
const DEFAULT_STATE_DRAFT_LEN = 8;
const MAX_DRAFT_BYTES = 64 * 2 ** 20;

/** Sizes that an engine runs with: its own limits, lowered and completed by the optional parameters. */
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
  /** Rows of logits that an executor needs for drafts, besides one for each sequence. */
  maxDraftRows: number;
  /** Most tokens of a sequence's draft that the engine finds; where layers keep states, of any draft. */
  maxDraftLen: number;
  /** Room that an executor needs beyond maxBatchSize sequences and the pool's blocks. */
  padding: PaddingRoom;
}

/** Checks the optional parameters that need no engine; throws ParameterError naming field, value and limit. */
export function checkOptionalParams(params: OptionalParams, modelType: ModelType): void {
  const { kvCacheConfig = {} } = params;
  checkValues('optionalParams', params);
  checkValues('kvCache', kvCacheConfig);
  checkValues('peftCache', params.peftCacheManagerConfig ?? {});
  if (modelType === 'V1' && params.enableChunkedContext) {
    throw refused(
      'enableChunkedContext',
      says`V1 runs prompts whole; use an in-flight ${option('modelType')} or leave it out`,
    );
  }
  if (modelType === 'V1' && kvCacheConfig.enableBlockReuse) {
    throw refused(
      'kvCacheConfig.enableBlockReuse',
      says`V1 computes every prompt whole; use an in-flight ${option('modelType')} or leave it out`,
    );
  }
  if (modelType === 'V1' && params.enableTrtOverlap) {
    throw refused(
      'enableTrtOverlap',
      says`V1 runs one batch in lockstep and has no second micro-batch; use an in-flight ${option('modelType')} or leave it out`,
    );
  }
  if (modelType === 'V1' && params.logitsPostProcessorModule !== undefined) {
    throw refused(
      'logitsPostProcessorModule',
      says`V1 has no logits post-processors; use an in-flight ${option('modelType')} or leave it out`,
    );
  }
  if (modelType === 'V1' && params.maxWaitingRequests !== undefined) {
    throw refused(
      'maxWaitingRequests',
      says`V1 makes its batches of those that wait; use an in-flight ${option('modelType')} or leave it out`,
    );
  }
  checkSpeculation(params, modelType);
  checkDraftModel(params, modelType);
  checkExecutor(params);
  checkChunking(params);
  checkSecondaryPool(kvCacheConfig);
  checkDiskCache(params);
  checkSinks(kvCacheConfig.sinkTokenLength, kvCacheConfig.maxAttentionWindow ?? 2 ** 31);
  checkIsolation(params);
}

function checkChunking({ enableChunkedContext, chunkingPolicy, ...params }: OptionalParams): void {
  for (const field of ['maxInterTokenLatencyMs', 'maxChunkMs'] as const) {
    if (params[field] === undefined || enableChunkedContext) continue;
    throw refused(
      field,
      says`only prompts that run in chunks can be kept short; turn ${option('enableChunkedContext')} on or leave this out`,
    );
  }
  if (chunkingPolicy === undefined) return;
  if (!enableChunkedContext) {
    throw refused(
      'chunkingPolicy',
      says`without ${option('enableChunkedContext')} there are no chunks; turn it on or leave this out`,
    );
  }
}

function checkSpeculation(params: OptionalParams, modelType: ModelType): void {
  const { speculate = 'none' } = params;
  const why = speculate === 'mtp' ? headProblem(params) : null;
  if (why !== null) throw refused('speculate', why);
  if (modelType !== 'V1' || speculate === 'none') return;
  throw refused(
    'speculate',
    says`V1 draws one token a step for each slot of its batch; use an in-flight ${option('modelType')} or leave it out`,
  );
}

/** Not every executor computes drafts of a model whose layers keep states. */
function checkDraftsOfStates({ speculate = 'none', draftEnginePath }: OptionalParams): void {
  const field = speculate !== 'none' ? 'speculate' : draftEnginePath !== undefined ? 'draftEnginePath' : null;
  if (field === null) return;
  throw refused(
    field,
    'layers of this model keep a state of each sequence, which this executor cannot take back where a draft is rejected; leave it out, or use the native executor',
  );
}

function checkDraftModel(params: OptionalParams, modelType: ModelType): void {
  const { draftEnginePath: path, enableTrtOverlap, executorModule } = params;
  if (path === undefined) return;
  if (modelType === 'V1') {
    throw refused(
      'draftEnginePath',
      says`V1 draws one token a step for each slot of its batch; use an in-flight ${option('modelType')} or leave it out`,
    );
  }
  if (enableTrtOverlap) {
    throw refused(
      'draftEnginePath',
      says`with ${option('enableTrtOverlap')} the draft model would run at the same time as the other micro-batch, on the same threads; leave one of them out`,
    );
  }
  if (executorModule !== undefined) {
    throw refused(
      'draftEnginePath',
      'an executor of your own runs no draft models; leave it or executorModule out',
    );
  }
}

function checkSecondaryPool({ hostCacheSize, enableBlockReuse }: KvCacheConfig): void {
  if (!hostCacheSize || enableBlockReuse) return;
  throw refused(
    'kvCacheConfig.hostCacheSize',
    says`without ${option('enableBlockReuse')} no block is kept that could be swapped out; turn it on or leave this out`,
  );
}

function checkDiskCache({ kvCacheConfig = {}, enableTrtOverlap }: OptionalParams): void {
  const { diskCachePath, diskCacheSize, enableBlockReuse } = kvCacheConfig;
  if (diskCachePath === undefined) {
    if (diskCacheSize === undefined) return;
    throw refused(
      'kvCacheConfig.diskCacheSize',
      says`without ${option('diskCachePath')} nothing is kept in files; give it too or leave this out`,
    );
  }
  if (diskCacheSize === 0) {
    throw refused(
      'kvCacheConfig.diskCacheSize',
      says`0 bytes have room for nothing; give more, or leave out ${option('diskCachePath')}`,
    );
  }
  if (!enableBlockReuse) {
    throw refused(
      'kvCacheConfig.diskCachePath',
      says`without ${option('enableBlockReuse')} no block is kept that could be written; turn it on or leave this out`,
    );
  }
  if (enableTrtOverlap) {
    throw refused(
      'kvCacheConfig.diskCachePath',
      says`with ${option('enableTrtOverlap')} there is hardly a moment in which blocks can be read; leave one of them out`,
    );
  }
}

/** Lowers the engine's limits to those asked for and fills in the rest. */
export function resolveLimits(
  params: OptionalParams,
  engine: {
    maxInputLen: number;
    maxSeqLen: number;
    config?: Pick<ModelConfig, 'slidingWindow' | 'layerWindows'> & Partial<Pick<ModelConfig, 'vocabSize'>>;
    /** Whether layers keep states, and the executor logs the drafts of such models. Absent: they keep none. */
    states?: 'logged' | 'notLogged';
  },
  modelType: ModelType = 'InflightFusedBatching',
  maxBeamWidth = 1,
): EngineLimits {
  const { states } = engine;
  if (states === 'notLogged') checkDraftsOfStates(params);
  const maxSeqLen = lowered('maxSeqLen', params.maxSeqLen, engine.maxSeqLen);
  const maxInputLen = Math.min(lowered('maxInputLen', params.maxInputLen, engine.maxInputLen), maxSeqLen);
  const maxNumSequences = params.maxNumSequences ?? DEFAULT_MAX_NUM_SEQUENCES;
  const maxBatchSize = Math.min(params.maxBatchSize ?? maxNumSequences, maxNumSequences);
  const tokensPerBlock = params.tokensPerBlock ?? DEFAULT_TOKENS_PER_BLOCK;
  const maxSequences = maxBatchSize * maxBeamWidth;
  const longestStep = params.enableChunkedContext ? maxSequences : Math.max(maxInputLen, maxSequences);
  const maxNumTokens =
    params.maxNumTokens ?? Math.min(Math.max(DEFAULT_MAX_NUM_TOKENS, longestStep), MAX_STEP_ROWS);
  const chunking = params.enableChunkedContext && {
    policy: params.chunkingPolicy ?? ('FIRST_COME_FIRST_SERVED' as const),
    unit: tokensPerBlock,
  };
  const defaultDraftLen = states === undefined ? DEFAULT_MAX_DRAFT_LEN : DEFAULT_STATE_DRAFT_LEN;
  const maxDraftRows =
    modelType === 'V1' || states === 'notLogged'
      ? 0
      : Math.min(draftRows(params, engine.config?.vocabSize ?? 1, maxSequences), maxNumTokens);
  return {
    maxInputLen,
    maxSeqLen,
    maxNumSequences,
    maxTopLogProbs: params.maxTopLogProbs ?? null,
    maxReturnedLogitsBytes: params.maxReturnedLogitsBytes ?? DEFAULT_MAX_RETURNED_LOGITS_BYTES,
    tokensPerBlock,
    window: windowOf(params, engine.config ?? { slidingWindow: null }, { maxSeqLen, tokensPerBlock }),
    microBatch: { maxBatchSize, maxNumTokens, maxSequences, ...(chunking ? { chunking } : {}) },
    maxDraftRows,
    maxDraftLen: Math.min(params.maxDraftLen ?? defaultDraftLen, maxDraftRows),
    padding: paddingRoom(modelType, { maxSequences, maxNumTokens, tokensPerBlock }),
  };
}

/** Most rows of drafts in a step with this many sequences. */
function draftRows(
  { speculate = 'none', draftEnginePath }: OptionalParams,
  vocabSize: number,
  maxSequences: number,
): number {
  if (speculate === 'none' && draftEnginePath === undefined) return DRAFT_ROWS;
  const inMemory = Math.floor(MAX_DRAFT_BYTES / (Float32Array.BYTES_PER_ELEMENT * vocabSize));
  return Math.max(DRAFT_ROWS, Math.min(DRAFT_ROWS_EACH * maxSequences, MAX_DRAFT_ROWS, inMemory));
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
      says`${option('kvCacheConfig.maxAttentionWindow')} is ${asked}; the model attends to at most ${slidingWindow} tokens.`,
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

/** @param window undefined: there is none */
function checkSinks(sinkTokenLength: number | undefined, window: number | undefined): void {
  if (sinkTokenLength === undefined || sinkTokenLength === 0) return;
  const field = SINKS;
  if (window === undefined) {
    throw refused(
      field,
      says`there is no attention window for sinks to be in; give ${option('maxAttentionWindow')} too`,
    );
  }
  checkRange(option(field), sinkTokenLength, { min: 0, max: window - 1, integer: true });
}

export interface KvBudget {
  limits: EngineLimits;
  /** Bytes of keys and values of one block in all layers. */
  bytesPerBlock: number;
  /** Bytes of one block of a draft model, whose pool has as many blocks; absent or 0: there is none. */
  draftBytesPerBlock?: number;
  /** Memory that is left once everything else is loaded. */
  available: AvailableMemory;
}

/** Number of blocks in the secondary pool: as many as hostCacheSize has room for. Throws if it has room for none. */
export function secondaryBlocks({ kvCacheConfig = {} }: OptionalParams, bytesPerBlock: number): number {
  const { hostCacheSize = 0 } = kvCacheConfig;
  if (bytesPerBlock === 0) return 0;
  if (hostCacheSize === 0 || hostCacheSize >= bytesPerBlock) return Math.floor(hostCacheSize / bytesPerBlock);
  throw new ParameterError(
    'kvCacheConfig.hostCacheSize',
    says`${option('kvCacheConfig.hostCacheSize')} is ${hostCacheSize}; one KV cache block takes ${bytesPerBlock} bytes.`,
  );
}

/**
 * Number of blocks in the KV pool: see kvCacheSize, which throws with the numbers if not even one sequence fits. Memory
 * for padding and the secondary pool is subtracted first.
 *
 *   available   [ padding | secondary pool | freeGpuMemoryFraction of the rest: the pool | left free ]
 *
 * With a draft model there are two pools with the same number of blocks: both hold the same tokens.
 */
export function kvBlocks(
  params: OptionalParams,
  { limits, bytesPerBlock, draftBytesPerBlock = 0, available }: KvBudget,
): number {
  const { maxTokens, freeGpuMemoryFraction = DEFAULT_KV_FRACTION } = params.kvCacheConfig ?? {};
  const paddingBytes = limits.padding.blocks * bytesPerBlock;
  const secondaryBytes = secondaryBlocks(params, bytesPerBlock) * bytesPerBlock;
  const padding = paddingBytes === 0 ? '' : `, less ${paddingBytes} bytes for padding`;
  const secondary =
    secondaryBytes === 0 ? '' : says`, less ${secondaryBytes} bytes of ${option('hostCacheSize')}`;
  return kvCacheSize({
    availableBytes: Math.max(0, available.bytes - paddingBytes - secondaryBytes),
    availableFrom: says`${available.from}${padding}${secondary}`,
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
  throw new ParameterError(
    field,
    says`${option(field)} is ${asked}; the engine was built for at most ${engine}.`,
  );
}

function refused(field: string, why: NamedText): ParameterError {
  return new ParameterError(field, says`${option(field)} is refused: ${why}.`, 'unsupported');
}
