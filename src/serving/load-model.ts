import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { onlyTold } from '../../base/error-reporter.js';
import type { IterationStats, ModelType, OptionalParams } from '../../callbacks/gpt-manager-options.js';
import type { FlagSpec } from '../../callbacks/options/option.js';
import { ENGINE_TABLE, type EngineLevel } from '../../callbacks/options/table.js';
import { DEFAULT_CHUNKING_POLICY } from '../../callbacks/options/words.js';
import type { EngineInfo } from '../../callbacks/worker-messages.js';
import type { BuildProgress } from '../../engine/building/builder.js';
import { type Engine, openEngine } from '../../engine/building/engine.js';
import { type CachedEngineOptions, cachedEngine } from '../../engine/building/engine-cache.js';
import { checkWeights } from '../../engine/building/weights-checksum.js';
import { type ExecutorWish, likelyExecutor } from '../../engine/executors/choose-executor.js';
import type { LoadRequest } from '../../engine/worker/load-executor.js';
import { InProcessHost, type InProcessHostOptions } from '../../host/in-process-host.js';
import type { AvailableMemory } from '../../kvcache/available-memory.js';
import { blocksToCompletion } from '../../scheduler/block-needs.js';
import type { ChunkingPolicy } from '../../scheduler/types.js';
import type { ModelCodec } from '../generation/model-codec.js';
import { localModel } from '../hub/local-model.js';
import type { PullProgress } from '../hub/pull.js';
import type { EngineValues, LoadingValues } from '../options/table.js';
import { LatestStats } from './latest-stats.js';
import type { ModelInfo, RunningModel } from './running-model.js';
import { engineFacts, type HostListeners, startEngine } from './start-engine.js';

/** Options by their plain names, none of which has to be given. */
type Loose<Values> = { [Name in keyof Values]?: Exclude<Values[Name], undefined> | undefined };

/**
 * How to load a model. Names and values are those of the flags of `skein serve`, and so are the defaults, but for chunkedPrefill
 * and prefixCaching, which are off where they are not given. What each means: docs/options.md.
 */
export interface ModelOptions extends Loose<LoadingValues>, Loose<EngineValues<FlagSpec | null>> {
  /**
   * A Hugging Face directory, a GGUF file or a folder with one, an engine directory, or ORG/NAME[:QUANT] of the Hugging Face
   * hub, which is downloaded where it is not in the cache. HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE and HF_HOME are honoured.
   */
  model: string;
  /** Default InflightFusedBatching. With V1, chunkedPrefill and prefixCaching have no effect. */
  batchingScheme?: ModelType | undefined;
  /** Like `model`: a smaller one with the same tokenizer, which drafts. See OptionalParams.draftEnginePath. */
  draftModel?: string | undefined;
  /** Needs chunkedPrefill, with which it is SHORTEST_FIRST unless given. */
  chunkingPolicy?: ChunkingPolicy | undefined;
  /** See OptionalParams.maxChunkMs. Needs chunkedPrefill, with which it is what suits the executor unless given. */
  maxChunkMs?: number | undefined;
  /** Bytes; needs prefixCaching; without effect with V1. See KvCacheConfig.hostCacheSize. */
  kvCacheSwapBytes?: number | undefined;
  /** Called while a model comes from the hub. */
  onDownload?: ((progress: PullProgress) => void) | undefined;
  /** Called while the engine is built, which happens once per model. */
  onProgress?: ((progress: BuildProgress) => void) | undefined;
  /**
   * Hears, in a sentence, of an engine of the cache whose weights have changed on the disk: it is built anew. Default: a warning of
   * the process, SKEIN_ENGINE_DAMAGED.
   */
  onDamaged?: ((message: string) => void) | undefined;
  /** Gives up loading. */
  signal?: AbortSignal | undefined;
}

/** What a model runs on, found in the cache or built. */
export interface FoundEngines {
  engine: Engine;
  draft: Engine | null;
}

/**
 * Builds the engine where that was not done before, and starts it.
 * @throws CheckpointError, EngineError, AddonError, each with one sentence about what is wrong.
 */
export async function loadModel(options: ModelOptions): Promise<RunningModel<'generator'>> {
  return startModel(options, await findEngines(options));
}

/** Builds the engine, and that of the draft model, where that was not done before. @throws as loadModel. */
export async function findEngines(options: ModelOptions): Promise<FoundEngines> {
  // Where nothing can run the model, nothing is built or downloaded for it.
  if (options.executorModule === undefined) await likelyExecutor(executorWish(options));
  const engine = await engineOf(options);
  const { draftModel } = options;
  const draft =
    draftModel === undefined ? null : await engineOf({ ...options, model: draftModel, revision: undefined });
  performance.mark('skein: engine found');
  return { engine, draft };
}

/** What the worker will be told to load. */
export function loadRequest(options: ModelOptions, engines: FoundEngines): LoadRequest {
  const { enginePath, optionalParams = {}, modelType, maxBeamWidth } = hostOptions(engines, options);
  return { enginePath, params: optionalParams, modelType, maxBeamWidth };
}

/**
 * Starts a worker for an engine.
 * @param memory what it may count as available for its KV cache, where others share the memory; else it looks for itself.
 * @throws as loadModel.
 */
export async function startModel(
  options: ModelOptions,
  engines: FoundEngines,
  memory?: AvailableMemory,
): Promise<RunningModel<'generator'>> {
  const { engine } = engines;
  const { host, codec, loaded, events, running } = await startEngine({
    signal: options.signal,
    startHost: ({ onStep, onStateChange, onError }: HostListeners<IterationStats>) => {
      const listeners = { onIterationStats: onStep, onStateChange, onError };
      const host = new InProcessHost({ ...hostOptions(engines, options, memory), ...listeners });
      host.ready.then(
        ({ loadMs }) => performance.mark('skein: engine loaded', { detail: { workerMs: loadMs } }),
        () => {},
      );
      return host;
    },
    openCodec: () => openCodec(engine),
  });
  const info = modelInfo(options.model, engine, loaded);
  const { maxInputLen, maxSeqLen } = info;
  const { vocabSize, endTokenIds: endTokens, numBlocks: maxBlocks } = loaded;
  const isIdle = () => host.running === 0;
  const latest = new LatestStats(options.batchingScheme ?? 'InflightFusedBatching', loaded, isIdle);
  /** Since the last iteration. */
  let usedBlocks = 0;
  events.onStats((stats) => {
    usedBlocks = stats.heldBlocks;
    latest.note(stats);
  });
  running.state.onChange(() => {
    if (running.state.failure === null) return;
    usedBlocks = 0; // the memory went with the engine
    latest.noteLoss();
  });
  return {
    kind: 'generator',
    get info() {
      return host.info === loaded ? info : modelInfo(options.model, engine, host.info ?? loaded);
    },
    model: {
      codec,
      engine: host,
      vocabSize,
      maxInputLen,
      maxSeqLen,
      endTokens,
      fitsTogether: (count, prompt, maxTokens) => fitTogether(loaded, count, prompt, maxTokens),
    },
    statistics: {
      counts: () => ({ running: host.running, waiting: host.queued, maxBlocks, usedBlocks }),
      onStats: (listener) => events.onStats(listener),
    },
    statsJson: () => latest.json(),
    watchFormation: (listener) => host.watchFormation(listener),
    resetCache: () => host.resetCache(),
    ...running,
  };
}

/** Beside the worker, which loads the engine meanwhile. */
async function openCodec(engine: Engine): Promise<ModelCodec> {
  const { ModelCodec } = await import('../generation/model-codec.js');
  const codec = await ModelCodec.open(engine.directory);
  performance.mark('skein: tokenizer loaded');
  return codec;
}

/** Whether so many sequences are no more than the engine takes, in an iteration, in its pool, and in its window. */
function fitTogether(engine: EngineInfo, count: number, promptLength: number, maxNewTokens: number): boolean {
  const { maxSequences, maxNumTokens, maxAttentionWindow, numBlocks, tokensPerBlock } = engine;
  if (count > Math.min(maxSequences, maxNumTokens)) return false;
  if (maxAttentionWindow !== null && promptLength + maxNewTokens > maxAttentionWindow) return false;
  const sequences = { promptLength, maxNewTokens, beamWidth: count, blocksHeld: 0 };
  const pool = { tokensPerBlock, maxAttentionWindow: Number.POSITIVE_INFINITY };
  return blocksToCompletion(sequences, pool) <= numBlocks;
}

function modelInfo(model: string, engine: Engine, loaded: EngineInfo): ModelInfo {
  const kvTokens = loaded.numBlocks * loaded.tokensPerBlock;
  // A sequence that the whole cache cannot hold would be refused later, with less of an explanation. In a window all can.
  const maxSeqLen = Math.min(loaded.maxSeqLen, loaded.maxAttentionWindow === null ? kvTokens : Infinity);
  return {
    ...engineFacts(model, engine, loaded),
    kvDtype: loaded.kvDtype,
    maxChunkMs: loaded.maxChunkMs,
    kvTokens,
    kvCacheBytes: loaded.memory.kvCacheBytes + (loaded.memory.draft?.kvCacheBytes ?? 0),
    tokensPerBlock: loaded.tokensPerBlock,
    secondaryBlocks: secondaryBlocks(loaded),
    maxInputLen: Math.min(loaded.maxInputLen, maxSeqLen - 1),
    maxSeqLen,
  };
}

/** Blocks of both pools are of one size. */
function secondaryBlocks({ numBlocks, memory }: EngineInfo): number {
  return Math.floor((memory.secondaryKvCacheBytes * numBlocks) / memory.kvCacheBytes) || 0;
}

function executorWish({ kvCacheDtype, microBatchOverlap, ...options }: ModelOptions): ExecutorWish {
  const kvDtype = kvCacheDtype === 'auto' ? undefined : kvCacheDtype;
  return { ...options, kvDtype, enableTrtOverlap: microBatchOverlap };
}

/** The fields of GptManagerOptions at a level, for the plain options that were given. */
function fieldsOf(level: EngineLevel, options: ModelOptions): Record<string, unknown> {
  const given: Readonly<Record<string, unknown>> = { ...options };
  const isInFlight = options.batchingScheme !== 'V1';
  const fields = ENGINE_TABLE.flatMap(({ level: of, field, option }) => {
    if (of !== level || option.name === null || (option.isInFlightOnly && !isInFlight)) return [];
    const value = given[option.name];
    const read = value === undefined ? undefined : option.toField(value);
    return read === undefined ? [] : [[field, read]];
  });
  return Object.fromEntries(fields);
}

/** Options of the host: those of its own names that were given. */
function hostOptions(
  { engine, draft }: FoundEngines,
  options: ModelOptions,
  memory?: AvailableMemory,
): InProcessHostOptions {
  const { maxQueuedRequests, maxQueuedRequestsPerKey, fairQueueing } = options;
  const optionalParams: OptionalParams = {
    ...fieldsOf('optionalParams', options),
    ...chunking(options),
    kvCacheConfig: fieldsOf('kvCache', options),
  };
  if (memory !== undefined) optionalParams.availableMemory = memory;
  if (draft !== null) optionalParams.draftEnginePath = draft.directory;
  return {
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 1,
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    ...fieldsOf('manager', options),
    enginePath: engine.directory,
    optionalParams,
    ...(maxQueuedRequests === undefined ? {} : { maxQueueSize: maxQueuedRequests }),
    ...(maxQueuedRequestsPerKey === undefined ? {} : { maxQueueSizePerKey: maxQueuedRequestsPerKey }),
    ...(fairQueueing === undefined ? {} : { fairQueueing }),
  };
}

/** Where prompts run in chunks, those of others do not wait for a long one. */
function chunking(options: ModelOptions): Pick<OptionalParams, 'chunkingPolicy' | 'maxChunkMs'> {
  const { chunkedPrefill, batchingScheme, chunkingPolicy, maxChunkMs } = options;
  if (!chunkedPrefill || batchingScheme === 'V1') return {};
  return {
    chunkingPolicy: chunkingPolicy ?? DEFAULT_CHUNKING_POLICY,
    maxChunkMs: maxChunkMs ?? 'auto',
  };
}

async function engineOf(options: ModelOptions): Promise<Engine> {
  const { revision, signal } = options;
  const onDownload = options.onDownload && onlyTold('onDownload', options.onDownload);
  const model = await localModel(options.model, { revision, onProgress: onDownload, signal });
  if (existsSync(join(model, 'engine.json'))) {
    const engine = openEngine(model);
    await checkWeights(engine, options.executor);
    return engine;
  }
  const cached: CachedEngineOptions = {
    model,
    precision: options.weights ?? 'auto',
    executor: options.executor,
  };
  if (options.outputWeights !== undefined) cached.outputPrecision = options.outputWeights;
  if (options.cacheDir !== undefined) cached.cacheDirectory = options.cacheDir;
  if (options.threads !== undefined) cached.threads = options.threads;
  if (options.onProgress !== undefined) cached.onProgress = options.onProgress;
  if (options.signal !== undefined) cached.signal = options.signal;
  const warn = (message: string) =>
    process.emitWarning(message, {
      type: 'SkeinWarning',
      code: 'SKEIN_ENGINE_DAMAGED',
    });
  cached.onDamaged = options.onDamaged === undefined ? warn : onlyTold('onDamaged', options.onDamaged);
  return cachedEngine(cached);
}
