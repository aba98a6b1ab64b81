import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { onlyTold, warn } from '../../base/error-reporter.js';
import { option, says } from '../../base/named-text.js';
import type { IterationStats, ModelType, OptionalParams } from '../../callbacks/gpt-manager-options.js';
import type { FlagSpec } from '../../callbacks/options/option.js';
import {
  PLAIN_DEVICE_CACHE_PERCENT,
  PLAIN_OPTIMAL_ADAPTER_SIZE,
} from '../../callbacks/options/peft-cache-options.js';
import { ENGINE_TABLE, type EngineLevel } from '../../callbacks/options/table.js';
import { DEFAULT_CHUNKING_POLICY } from '../../callbacks/options/words.js';
import type { MissingRanks } from '../../callbacks/ranks-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { EngineInfo } from '../../callbacks/worker-messages.js';
import type { BuildProgress } from '../../engine/building/builder.js';
import { type Engine, openEngine } from '../../engine/building/engine.js';
import { type CachedEngineOptions, cachedEngine } from '../../engine/building/engine-cache.js';
import { engineToLoad } from '../../engine/building/engine-to-load.js';
import { checkWeights } from '../../engine/building/weights-checksum.js';
import { type ExecutorWish, likelyExecutor } from '../../engine/executors/choose-executor.js';
import type { LoadRequest } from '../../engine/worker/load-executor.js';
import { type CloseOptions, InProcessHost, type InProcessHostOptions } from '../../host/in-process-host.js';
import type { AvailableMemory } from '../../kvcache/available-memory.js';
import type { KvCacheEvent } from '../../kvcache/cache-events.js';
import { eosTokenIds } from '../../models/checkpoints/config-values.js';
import { blocksToCompletion } from '../../scheduler/tokens/block-needs.js';
import type { ChunkingPolicy } from '../../scheduler/tokens/types.js';
import type { ModelCodec } from '../generation/model-codec.js';
import { type CheckedSampling, checkedSampling } from '../generation/sampling-defaults.js';
import type { TextModel } from '../generation/text-model.js';
import { localModel } from '../hub/local-model.js';
import type { PullProgress } from '../hub/pull.js';
import type { EngineValues, LoadingValues } from '../options/table.js';
import type { ModelAdapters } from './adapters/model-adapters.js';
import type { LoadedBase } from './adapters/start-adapters.js';
import type { KvEvents } from './kv-events/kv-events.js';
import { LatestStats } from './latest-stats.js';
import { leadingRank } from './leading-rank.js';
import { loweredContext, loweredContextNote } from './lowered-context.js';
import type { ModelInfo, RunningModel } from './running-model.js';
import { engineFacts, type HostListeners, startEngine } from './start-engine.js';

/** Options by their plain names, all optional. */
type Loose<Values> = { [Name in keyof Values]?: Exclude<Values[Name], undefined> | undefined };

/**
 * Options for loading a model. Names, values and defaults are those of the flags of `skein serve`, except that
 * chunkedPrefill and prefixCaching are off by default, and Skein.load takes a KV cache of 32,768 tokens unless kvCacheTokens,
 * memoryFraction or a longer maxContextTokens is given. docs/options.md explains each.
 */
export interface ModelOptions extends Loose<LoadingValues>, Loose<EngineValues<FlagSpec | null>> {
  /**
   * The model: a Hugging Face directory, a GGUF file or a folder with one, an engine directory, or ORG/NAME[:QUANT] of
   * the Hugging Face hub, which is downloaded unless it is in the cache. HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE and
   * HF_HOME are honoured.
   */
  model: string;
  /** Batching scheme; default InflightFusedBatching. With V1, chunkedPrefill and prefixCaching have no effect. */
  batchingScheme?: ModelType | undefined;
  /**
   * A smaller model with the same tokenizer, which drafts tokens; named like `model`. See
   * OptionalParams.draftEnginePath.
   */
  draftModel?: string | undefined;
  /**
   * LoRA adapters by which the model answers too, by name: a folder of PEFT, a GGUF file of llama.cpp, or ORG/NAME of the Hugging Face
   * hub. `{}`: none at first; later ones come with Skein.loadAdapter. Default: the model takes none.
   */
  adapters?: Readonly<Record<string, string>> | undefined;
  /** Policy by which prompts share an iteration; default SHORTEST_FIRST. Needs chunkedPrefill. */
  chunkingPolicy?: ChunkingPolicy | undefined;
  /**
   * Milliseconds that an iteration may spend on prompts which it does not end; default: what suits the executor. Needs
   * chunkedPrefill. See OptionalParams.maxChunkMs.
   */
  maxChunkMs?: number | undefined;
  /**
   * Bytes of memory to which cached blocks are swapped out; default 0. Needs prefixCaching; no effect with V1. See
   * KvCacheConfig.hostCacheSize.
   */
  kvCacheSwapBytes?: number | undefined;
  /** Called with progress while a model is downloaded from the hub. */
  onDownload?: ((progress: PullProgress) => void) | undefined;
  /** Called with progress while the engine is built, which happens once per model. */
  onProgress?: ((progress: BuildProgress) => void) | undefined;
  /**
   * Called with a sentence when the weights of a cached engine have changed on the disk; the engine is then built anew.
   * Default: a process warning, SKEIN_ENGINE_DAMAGED.
   */
  onDamaged?: ((message: string) => void) | undefined;
  /**
   * Called with the ranks that the model waits for at ranksAddress, each time that they change, and with none when all are there, at the start
   * and whenever one is lost.
   */
  onMissingRanks?: ((missing: MissingRanks) => void) | undefined;
  /** Hears how the KV cache changes, from the engine's first iteration on. Needs prefixCaching. */
  cacheListener?: CacheListener | undefined;
  /** Signal whose abort ends the loading. */
  signal?: AbortSignal | undefined;
}

/** Who hears how a KV cache changes. */
export interface CacheListener {
  /** The events of an iteration, in their order. */
  note(events: readonly KvCacheEvent[]): void;
  /** The engine has died, and its cache with it. */
  lose(): void;
}

/** The engines of a model and its draft model, found in the cache or built. */
export interface FoundEngines {
  engine: Engine;
  draft: Engine | null;
}

/**
 * Builds the engine if it is not in the cache, and starts it.
 * @throws CheckpointError, EngineError, AddonError, each with one sentence about what is wrong.
 */
export async function loadModel(options: ModelOptions): Promise<RunningModel<'generator'>> {
  return startModel(options, await findEngines(options));
}

/**
 * Builds the engine, and that of the draft model, if they are not in the cache.
 *
 * @param isRank true for a rank that joins the ranks of another machine, which compare their weights
 * @throws as loadModel
 */
export async function findEngines(options: ModelOptions, isRank = false): Promise<FoundEngines> {
  // A model that nothing here can run is neither downloaded nor built.
  if (options.executorModule === undefined) await likelyExecutor(executorWish(options));
  const engine = await engineOf(options, isRank);
  const { draftModel } = options;
  const draft =
    draftModel === undefined
      ? null
      : await engineOf({ ...options, model: draftModel, revision: undefined }, isRank);
  performance.mark('skein: engine found');
  return { engine, draft };
}

/** Load request for the worker. */
export function loadRequest(options: ModelOptions, engines: FoundEngines): LoadRequest {
  const { enginePath, optionalParams = {}, modelType, maxBeamWidth } = hostOptions(engines, options);
  return { enginePath, params: optionalParams, modelType, maxBeamWidth };
}

/**
 * Starts a worker for an engine.
 * @param memory memory that the KV cache may count as available, where models share it; default: the worker asks the
 * system.
 * @throws as loadModel.
 */
export async function startModel(
  options: ModelOptions,
  engines: FoundEngines,
  memory?: AvailableMemory,
): Promise<RunningModel<'generator'>> {
  const { engine } = engines;
  let report = (error: Error) => warn(error.message);
  const kvEvents = await kvEventsOf(options, (error) => report(error));
  const { host, codec, loaded, events, running } = await startEngine({
    options,
    startHost: ({ onStep, onStateChange, onError, onMissing }: HostListeners<IterationStats>) => {
      report = onError;
      const listeners = {
        onIterationStats: onStep,
        onStateChange,
        onError,
        ...cacheEvents(options, kvEvents),
      };
      const host = new InProcessHost({ ...hostOptions(engines, options, memory, onMissing), ...listeners });
      markLoaded(host);
      return host;
    },
    openCodec: () => openCodec(engine, options),
  }).catch((error: unknown) => {
    kvEvents?.close();
    throw error;
  });
  const infoOf = infoReader(options, engine);
  const info = infoOf(loaded);
  const { numBlocks: maxBlocks } = loaded;
  const model = textModelOf(options, host, codec, loaded, info);
  const { adapters: room, executor } = loaded;
  const forget = (taskId: bigint) => host.forgetAdapter(taskId);
  const { config } = engine.manifest;
  const base = { model, config, room, executor, inFlight: () => host.adaptersInFlight(), forget };
  const adapters = await adaptersOf(options, base).catch(async (error: unknown) => {
    await running.close({ abort: true });
    kvEvents?.close();
    throw error;
  });
  kvEvents?.nameAdapters(adapters);
  const close = async (how?: CloseOptions) => {
    await Promise.all([adapters?.close(), running.close(how)]);
    kvEvents?.close();
  };
  const isIdle = () => host.running === 0;
  const latest = new LatestStats(options.batchingScheme ?? 'InflightFusedBatching', loaded, isIdle);
  let usedBlocks = 0; // of the KV cache, after the latest iteration
  events.onStats((stats) => {
    usedBlocks = stats.heldBlocks;
    latest.note(stats);
  });
  running.state.onChange(() => {
    if (running.state.failure === null) return;
    usedBlocks = 0; // the blocks were lost with the engine
    latest.noteLoss();
    kvEvents?.lose();
    options.cacheListener?.lose();
  });
  return {
    kind: 'generator',
    get info() {
      return host.info === loaded ? info : infoOf(host.info ?? loaded);
    },
    model,
    adapters,
    kvEvents: kvEvents?.info ?? null,
    statistics: {
      counts: () => ({ ...countsOf(host), maxBlocks, usedBlocks }),
      paused: () => host.paused,
      onStats: (listener) => events.onStats(listener),
    },
    statsJson: () => latest.json(),
    watchFormation: (listener) => host.watchFormation(listener),
    resetCache: () => host.resetCache(),
    ...running,
    close,
  };
}

/** The model as texts need it. */
function textModelOf(
  options: ModelOptions,
  host: InProcessHost,
  codec: ModelCodec,
  loaded: EngineInfo,
  { maxInputLen, maxSeqLen, sampling }: ModelInfo,
): TextModel {
  return {
    codec,
    engine: host,
    vocabSize: loaded.vocabSize,
    maxInputLen,
    maxSeqLen,
    endTokens: endTokensOf(options, loaded, codec),
    sampling,
    fitsTogether: (count, prompt, maxTokens) => fitTogether(loaded, count, prompt, maxTokens),
  };
}

function markLoaded(host: InProcessHost): void {
  host.ready.then(
    ({ loadMs }) => performance.mark('skein: engine loaded', { detail: { workerMs: loadMs } }),
    () => {},
  );
}

function countsOf({ size, waiting }: InProcessHost): { running: number; waiting: number } {
  return { running: size - waiting, waiting };
}

/** Adapters of the options; null: there is no option for them, and their code is not imported. @throws as startAdapters */
async function adaptersOf(options: ModelOptions, base: LoadedBase): Promise<ModelAdapters | null> {
  if (options.adapters === undefined) return null;
  const { startAdapters } = await import('./adapters/start-adapters.js');
  return startAdapters(options.adapters, options, base);
}

/** Tells all who listen of the cache's events; nothing where nobody does: then the engine makes none. */
function cacheEvents(
  { cacheListener }: ModelOptions,
  kvEvents: KvEvents | null,
): Pick<InProcessHostOptions, 'onKvCacheEvents'> {
  if (kvEvents === null && cacheListener === undefined) return {};
  return {
    onKvCacheEvents: (events) => {
      kvEvents?.publish(events);
      cacheListener?.note(events);
    },
  };
}

/** Opens the sockets for events of the cache; null: no option asks for them, and their code is not imported. @throws EndpointError */
async function kvEventsOf(options: ModelOptions, onError: (error: Error) => void): Promise<KvEvents | null> {
  const {
    kvEventsEndpoint,
    kvEventsReplayEndpoint,
    kvEventsTopic,
    kvEventsCurveKeyFile,
    kvEventsCurvePeerFile,
  } = options;
  const given =
    kvEventsEndpoint ??
    kvEventsReplayEndpoint ??
    kvEventsTopic ??
    kvEventsCurveKeyFile ??
    kvEventsCurvePeerFile;
  if (given === undefined) return null;
  const { KvEvents } = await import('./kv-events/kv-events.js');
  return KvEvents.open(options, onError);
}

/** Opens the tokenizer in this thread, while the worker loads the engine. */
async function openCodec(engine: Engine, { chatTemplate }: ModelOptions): Promise<ModelCodec> {
  const { ModelCodec } = await import('../generation/model-codec.js');
  const codec = await ModelCodec.open(engine.directory, chatTemplate);
  performance.mark('skein: tokenizer loaded');
  return codec;
}

/** Tokens that end an answer: those of the model's configuration and of its tokenizer. A module that computes its own tokens names all. */
function endTokensOf(
  { executorModule }: ModelOptions,
  { endTokenIds, vocabSize }: EngineInfo,
  codec: ModelCodec,
): number[] {
  return eosTokenIds([endTokenIds, executorModule === undefined ? codec.endTokens : []], vocabSize);
}

/** True where so many sequences fit into one iteration, into the pool and into the attention window. */
function fitTogether(engine: EngineInfo, count: number, promptLength: number, maxNewTokens: number): boolean {
  const { maxSequences, maxNumTokens, maxAttentionWindow, numBlocks, tokensPerBlock } = engine;
  if (count > Math.min(maxSequences, maxNumTokens)) return false;
  if (maxAttentionWindow !== null && promptLength + maxNewTokens > maxAttentionWindow) return false;
  const sequences = { promptLength, maxNewTokens, beamWidth: count, blocksHeld: 0 };
  const pool = { tokensPerBlock, maxAttentionWindow: Number.POSITIVE_INFINITY };
  return blocksToCompletion(sequences, pool) <= numBlocks;
}

/** Makes the properties of a model of what its engine says at present. */
function infoReader(options: ModelOptions, engine: Engine): (loaded: EngineInfo) => ModelInfo {
  const { model, generationConfig = 'auto' } = options;
  const sampling = checkedSampling(generationConfig === 'none' ? {} : (engine.manifest.sampling ?? {}));
  const note = loweredContextNote(options, engine);
  return (loaded) => modelInfo(model, engine, loaded, sampling, note);
}

function modelInfo(
  model: string,
  engine: Engine,
  loaded: EngineInfo,
  { defaults: sampling, leftOut: samplingLeftOut }: CheckedSampling,
  contextNote: string | null,
): ModelInfo {
  const kvTokens = loaded.numBlocks * loaded.tokensPerBlock;
  // A sequence that the whole cache cannot hold would be refused later, with less of an explanation. With a window any
  // length fits.
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
    loweredContext: contextNote,
    sampling,
    samplingLeftOut,
    remarks: engine.manifest.remarks ?? [],
  };
}

/** Number of secondary blocks: blocks of both pools have the same size. */
function secondaryBlocks({ numBlocks, memory }: EngineInfo): number {
  return Math.floor((memory.secondaryKvCacheBytes * numBlocks) / memory.kvCacheBytes) || 0;
}

function executorWish({ kvCacheDtype, microBatchOverlap, adapters, ...options }: ModelOptions): ExecutorWish {
  const kvDtype = kvCacheDtype === 'auto' ? undefined : kvCacheDtype;
  // Without any it may be an encoder, which needs no room for them.
  const peftCacheManagerConfig = Object.keys(adapters ?? {}).length === 0 ? undefined : {};
  return { ...options, kvDtype, enableTrtOverlap: microBatchOverlap, peftCacheManagerConfig };
}

/** Fields of GptManagerOptions at one level, made of the plain options that were given. */
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

/** Options of the host, made of the plain options that were given. */
function hostOptions(
  { engine, draft }: FoundEngines,
  options: ModelOptions,
  memory?: AvailableMemory,
  onMissing: (missing: MissingRanks) => void = () => {},
): InProcessHostOptions {
  const { maxQueuedRequests, maxQueuedRequestsPerKey, fairQueueing } = options;
  const optionalParams: OptionalParams = {
    ...fieldsOf('optionalParams', options),
    ...chunking(options),
    kvCacheConfig: fieldsOf('kvCache', options),
  };
  if (options.adapters !== undefined) {
    optionalParams.peftCacheManagerConfig = {
      deviceCachePercent: PLAIN_DEVICE_CACHE_PERCENT,
      optimalAdapterSize: PLAIN_OPTIMAL_ADAPTER_SIZE,
      ...fieldsOf('peftCache', options),
    };
  }
  if (memory !== undefined) optionalParams.availableMemory = memory;
  const contextTokens = loweredContext(options, engine);
  if (contextTokens !== null) optionalParams.maxSeqLen = contextTokens;
  if (draft !== null) optionalParams.draftEnginePath = draft.directory;
  const ranks = leadingRank(options);
  return {
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 1,
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    ...fieldsOf('manager', options),
    enginePath: engine.directory,
    optionalParams,
    ...(ranks === undefined ? {} : { ranks: { ...ranks, onMissing } }),
    ...(maxQueuedRequests === undefined ? {} : { maxQueueSize: maxQueuedRequests }),
    ...(maxQueuedRequestsPerKey === undefined ? {} : { maxQueueSizePerKey: maxQueuedRequestsPerKey }),
    ...(fairQueueing === undefined ? {} : { fairQueueing }),
  };
}

/** Options of chunked prefill, so that one long prompt does not keep all others waiting. */
function chunking(options: ModelOptions): Pick<OptionalParams, 'chunkingPolicy' | 'maxChunkMs'> {
  const { chunkedPrefill, batchingScheme, chunkingPolicy, maxChunkMs } = options;
  if (!chunkedPrefill || batchingScheme === 'V1') return {};
  return {
    chunkingPolicy: chunkingPolicy ?? DEFAULT_CHUNKING_POLICY,
    maxChunkMs: maxChunkMs ?? 'auto',
  };
}

async function engineOf(options: ModelOptions, isRank: boolean): Promise<Engine> {
  const { revision, signal } = options;
  const onDownload = options.onDownload && onlyTold('onDownload', options.onDownload);
  const model = await localModel(options.model, { revision, onProgress: onDownload, signal });
  if (options.panels === false) {
    checkStored(options);
    return engineToLoad(model, false);
  }
  if (existsSync(join(model, 'engine.json'))) {
    const engine = openEngine(model);
    await checkWeights(engine, options.executor);
    return engine;
  }
  const cached: CachedEngineOptions = {
    model,
    precision: options.weights ?? 'auto',
    executor: options.executor,
    checksums: packsWhole(options, isRank) ? 'when packed' : 'now',
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

/** @throws ParameterError where options ask for other weights than those of the file, or for an executor that packs its own */
function checkStored({ weights = 'auto', outputWeights = 'auto', executorModule }: ModelOptions): void {
  const other = (['weights', 'outputWeights'] as const).find((name) => {
    const given = name === 'weights' ? weights : outputWeights;
    return given !== 'auto' && given !== 'stored';
  });
  if (other !== undefined) {
    throw new ParameterError(
      other,
      says`${option(other)} is ${other === 'weights' ? weights : outputWeights}, but without ${option('panels')} the model has the numbers of its file: leave it out, or give stored.`,
    );
  }
  if (executorModule !== undefined) {
    throw new ParameterError(
      'panels',
      says`${option('panels')} is of the native executor, and ${option('executorModule')} names another.`,
    );
  }
}

/** True if one native executor runs the model, which reads all of a GGUF's matrices when it packs them. */
function packsWhole({ executor, executorModule, ...sizes }: ModelOptions, isRank: boolean): boolean {
  const { tensorParallelSize = 1, pipelineParallelSize = 1 } = sizes;
  const isNative = executor === undefined || executor === 'auto' || executor === 'native';
  return (
    isNative && executorModule === undefined && !isRank && tensorParallelSize * pipelineParallelSize === 1
  );
}
