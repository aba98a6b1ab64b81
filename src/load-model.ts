import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { onlyTold, warn } from '../base/error-reporter.js';
import { CallbackError, tellGuarded } from '../base/guarded-calls.js';
import { skeinVersion } from '../base/package-info.js';
import type { FormationListener } from '../callbacks/formation.js';
import type {
  ExecutorChoice,
  IterationStats,
  ManagerState,
  ModelType,
  OptionalParams,
  Speculate,
} from '../callbacks/gpt-manager-options.js';
import type { WorkerRestartOptions } from '../callbacks/restart-policy.js';
import type { EngineInfo } from '../callbacks/worker-messages.js';
import type { BuildProgress } from '../engine/building/builder.js';
import { type Engine, openEngine } from '../engine/building/engine.js';
import { type CachedEngineOptions, cachedEngine } from '../engine/building/engine-cache.js';
import { type ExecutorWish, likelyExecutor } from '../engine/executors/choose-executor.js';
import type { OutputPrecision, WeightPrecision } from '../engine/executors/executor.js';
import { checkWeights } from '../engine/weights-checksum.js';
import type { LoadRequest } from '../engine/worker/load-executor.js';
import { type CloseOptions, InProcessHost, type InProcessHostOptions } from '../host/in-process-host.js';
import { WorkerStuckError } from '../host/worker-supervisor.js';
import type { AvailableMemory } from '../kvcache/available-memory.js';
import type { KvDtype } from '../kvcache/kv-dtype.js';
import { blocksToCompletion } from '../scheduler/block-needs.js';
import type { ChunkingPolicy, SchedulerPolicy } from '../scheduler/types.js';
import type { TextModel } from './generation/text-model.js';
import { localModel } from './hub/local-model.js';
import type { PullProgress } from './hub/pull.js';
import { LatestStats } from './latest-stats.js';
import { nameOf } from './model-name.js';
import { DEFAULT_CHUNKING_POLICY } from './option-ranges.js';

/** How to load a model. Names and defaults are those of the flags of `skein serve`. */
export interface ModelOptions {
  /**
   * A Hugging Face directory, a GGUF file or a folder with one, an engine directory, or ORG/NAME[:QUANT] of the Hugging Face
   * hub, which is downloaded where it is not in the cache. HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE and HF_HOME are honoured.
   */
  model: string;
  /** Branch, tag or commit of a `model` from the hub; default main. */
  revision?: string | undefined;
  weights?: 'auto' | WeightPrecision | undefined;
  outputWeights?: 'auto' | OutputPrecision | undefined;
  kvDtype?: 'auto' | KvDtype | undefined;
  /** See OptionalParams.executor. */
  executor?: ExecutorChoice | undefined;
  threads?: number | undefined;
  /** See OptionalParams.computeWeight. */
  computeWeight?: number | undefined;
  cacheDir?: string | undefined;
  /** Default InflightFusedBatching. With V1, enableChunkedContext and enableBlockReuse have no effect. */
  modelType?: ModelType | undefined;
  schedulerPolicy?: SchedulerPolicy | undefined;
  maxNumSequences?: number | undefined;
  maxBatchSize?: number | undefined;
  maxNumTokens?: number | undefined;
  /** Most beams of a request; default 1. The engine takes room for as many sequences of every request. */
  maxBeamWidth?: number | undefined;
  maxWaitIterations?: number | undefined;
  startHorizon?: number | undefined;
  /** Needs enableChunkedContext. */
  maxInterTokenLatencyMs?: number | undefined;
  /** See OptionalParams.speculate; not with V1. */
  speculate?: Speculate | undefined;
  /** Like `model`: a smaller one with the same tokenizer, which drafts. See OptionalParams.draftEnginePath. */
  draftModel?: string | undefined;
  maxDraftLen?: number | undefined;
  maxQueueSize?: number | undefined;
  /** See InProcessHostOptions. */
  maxQueueSizePerKey?: number | undefined;
  fairQueueing?: boolean | undefined;
  enableChunkedContext?: boolean | undefined;
  /** Needs enableChunkedContext, with which it is SHORTEST_FIRST unless given. */
  chunkingPolicy?: ChunkingPolicy | undefined;
  /** See OptionalParams.maxChunkMs. Needs enableChunkedContext, with which it is 'auto' there unless given. */
  maxChunkMs?: number | undefined;
  enableBlockReuse?: boolean | undefined;
  enableTrtOverlap?: boolean | undefined;
  maxInputLen?: number | undefined;
  maxSeqLen?: number | undefined;
  maxTokens?: number | undefined;
  freeGpuMemoryFraction?: number | undefined;
  /** Needs enableBlockReuse; without effect with V1. */
  hostCacheSize?: number | undefined;
  secondaryOffloadMinPriority?: number | undefined;
  /** See OptionalParams.maxReturnedLogitsBytes. */
  maxReturnedLogitsBytes?: number | undefined;
  maxAttentionWindow?: number | undefined;
  sinkTokenLength?: number | undefined;
  tokensPerBlock?: number | undefined;
  /** Seconds; see OptionalParams.watchdogTimeoutMs. */
  watchdogTimeout?: number | undefined;
  /** See OptionalParams.workerRestart. */
  workerRestart?: WorkerRestartOptions | false | undefined;
  /** See OptionalParams.executorModule: an executor of one's own. */
  executorModule?: string | URL | undefined;
  /** See OptionalParams.logitsPostProcessorModule; not with V1. */
  logitsPostProcessorModule?: string | URL | undefined;
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

export interface ModelInfo {
  /** The model's folder or file name. */
  name: string;
  /** Changes with the model's files, its precision and the version of skein. */
  fingerprint: string;
  enginePath: string;
  executor: string;
  /** Why it is not the fastest one, and how to get that; null: it is, or it was asked for. */
  executorFallback: string | null;
  instructionSet: string;
  threads: number;
  weights: string;
  kvDtype: string;
  /** Milliseconds of an iteration for chunks of long prompts; null: no bound. */
  maxChunkMs: number | null;
  /** Tokens that the KV cache holds over all requests. */
  kvTokens: number;
  /** What it takes where all of it is in use, and that of a draft model, in bytes. */
  kvCacheBytes: number;
  /** Tokens of one block of it. */
  tokensPerBlock: number;
  /** Blocks of its secondary pool: see ModelOptions.hostCacheSize. */
  secondaryBlocks: number;
  maxInputLen: number;
  maxSeqLen: number;
}

export interface EngineCounts {
  running: number;
  waiting: number;
  maxBlocks: number;
  usedBlocks: number;
}

/** A model that runs. */
export interface LoadedModel {
  kind: 'generator';
  /** Of the engine as it runs now: one that was started again may compute with another executor. */
  readonly info: ModelInfo;
  model: TextModel;
  counts(): EngineCounts;
  onStats(listener: (stats: IterationStats) => void): () => void;
  /** Calls the listener with each change of the engine's state, and why, where it is 'restarting' or 'failed'. */
  onStateChange(listener: (state: ManagerState, failure: Error | null) => void): void;
  /** Calls the listener with failures that belong to no request. */
  onError(listener: (error: Error) => void): void;
  /** The batch manager's statistics of the latest iteration, as JSON; with nothing in flight all counts are 0. */
  statsJson(): string;
  /** See InProcessHost.watchFormation. */
  watchFormation(listener: FormationListener): () => void;
  /** Forgets every block of the KV cache that later requests could find; resolves with their number. */
  resetCache(): Promise<number>;
  /** The engine's thread is in a native call that does not return: the process cannot end but by being killed. */
  isStuck(): boolean;
  /** Lets what is active end, then frees the engine. */
  close(options?: CloseOptions): Promise<void>;
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
export async function loadModel(options: ModelOptions): Promise<LoadedModel> {
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
): Promise<LoadedModel> {
  const { engine } = engines;
  options.signal?.throwIfAborted();
  const events = new EngineEvents();
  const host = new InProcessHost({
    ...hostOptions(engines, options, memory),
    onIterationStats: (stats) => events.emitStats(stats),
    onStateChange: (state, failure) => events.emitState(state, failure),
    onError: (error) => events.emitError(error),
  });
  // The worker loads the engine meanwhile.
  const opening = import('./generation/model-codec.js').then(async ({ ModelCodec }) => {
    const codec = await ModelCodec.open(engine.directory);
    performance.mark('skein: tokenizer loaded');
    return codec;
  });
  const close = async (options: CloseOptions = {}) => {
    await host.close(options);
    await opening.then(
      (codec) => codec.close(),
      () => {},
    );
  };
  const running = host.ready.then((loaded) => {
    performance.mark('skein: engine loaded', { detail: { workerMs: loaded.loadMs } });
    return loaded;
  });
  const [codec, loaded] = await Promise.all([opening, running]).catch(async (error: unknown) => {
    await close({ abort: true });
    throw error;
  });
  if (options.signal?.aborted) await close({ abort: true });
  options.signal?.throwIfAborted();
  const info = modelInfo(options.model, engine, loaded);
  const { maxInputLen, maxSeqLen } = info;
  const { vocabSize, endTokenIds: endTokens, numBlocks: maxBlocks } = loaded;
  const isIdle = () => host.running === 0;
  const latest = new LatestStats(options.modelType ?? 'InflightFusedBatching', loaded, isIdle);
  events.onStats((stats) => latest.note(stats));
  events.onState((_, failure) => {
    if (failure !== null) latest.noteLoss();
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
    counts: () => {
      return { running: host.running, waiting: host.queued, maxBlocks, usedBlocks: events.usedBlocks };
    },
    onStats: (listener) => events.onStats(listener),
    onStateChange: (listener) => events.onState(listener),
    isStuck: () => host.failure instanceof WorkerStuckError,
    onError: (listener) => events.onError(listener),
    statsJson: () => latest.json(),
    watchFormation: (listener) => host.watchFormation(listener),
    resetCache: () => host.resetCache(),
    close,
  };
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

/** Hands on what an engine reports while it runs. */
export class EngineEvents<Stats extends { heldBlocks: number } = IterationStats> {
  readonly #statsListeners = new Set<(stats: Stats) => void>();
  readonly #stateListeners = new Set<(state: ManagerState, failure: Error | null) => void>();
  readonly #errorListeners = new Set<(error: Error) => void>();
  /** Blocks in use since the last iteration. */
  usedBlocks = 0;

  emitStats(stats: Stats): void {
    this.usedBlocks = stats.heldBlocks;
    for (const listener of this.#statsListeners) this.#tell('onStats', () => listener(stats));
  }

  emitState(state: ManagerState, failure: Error | null): void {
    if (failure !== null) this.usedBlocks = 0; // the memory went with the engine
    for (const listener of this.#stateListeners) this.#tell('onStateChange', () => listener(state, failure));
  }

  emitError(error: Error): void {
    // Whoever has requests in flight hears of an engine that died; of a callback that failed nobody else would.
    if (this.#errorListeners.size === 0 && error instanceof CallbackError) warn(error.message);
    for (const listener of this.#errorListeners) onlyTold('onError', listener)(error);
  }

  #tell(callback: string, call: () => unknown): void {
    tellGuarded({ callback }, call, (error) => this.emitError(error));
  }

  onStats(listener: (stats: Stats) => void): () => void {
    this.#statsListeners.add(listener);
    return () => this.#statsListeners.delete(listener);
  }

  onState(listener: (state: ManagerState, failure: Error | null) => void): void {
    this.#stateListeners.add(listener);
  }

  onError(listener: (error: Error) => void): void {
    this.#errorListeners.add(listener);
  }
}

function modelInfo(model: string, engine: Engine, loaded: EngineInfo): ModelInfo {
  const kvTokens = loaded.numBlocks * loaded.tokensPerBlock;
  // A sequence that the whole cache cannot hold would be refused later, with less of an explanation. In a window all can.
  const maxSeqLen = Math.min(loaded.maxSeqLen, loaded.maxAttentionWindow === null ? kvTokens : Infinity);
  return {
    name: nameOf(model),
    fingerprint: fingerprint(engine),
    enginePath: engine.directory,
    executor: loaded.executor,
    executorFallback: loaded.executorFallback,
    instructionSet: loaded.instructionSet,
    threads: loaded.threads,
    weights: precisionsOf(engine),
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

function executorWish({ kvDtype, ...options }: ModelOptions): ExecutorWish {
  return { ...options, kvDtype: kvDtype === 'auto' ? undefined : kvDtype };
}

/** Options of the host: those of the same names that were given. */
function hostOptions(
  { engine, draft }: FoundEngines,
  options: ModelOptions,
  memory?: AvailableMemory,
): InProcessHostOptions {
  const { kvDtype, watchdogTimeout, modelType = 'InflightFusedBatching' } = options;
  // The first two are on by default in the server; V1 knows none of them.
  const inFlightOnly: Pick<ModelOptions, 'enableChunkedContext' | 'enableBlockReuse' | 'hostCacheSize'> =
    modelType === 'V1' ? {} : options;
  const { enableChunkedContext, enableBlockReuse, hostCacheSize } = inFlightOnly;
  const optionalParams: OptionalParams = {
    ...given(options, [
      'executor',
      'threads',
      'computeWeight',
      'maxNumSequences',
      'maxBatchSize',
      'maxNumTokens',
      'maxWaitIterations',
      'startHorizon',
      'maxInterTokenLatencyMs',
      'speculate',
      'maxDraftLen',
      'enableTrtOverlap',
      'maxInputLen',
      'maxSeqLen',
      'maxReturnedLogitsBytes',
      'tokensPerBlock',
      'executorModule',
      'logitsPostProcessorModule',
      'workerRestart',
    ]),
    ...(watchdogTimeout === undefined ? {} : { watchdogTimeoutMs: 1000 * watchdogTimeout }),
    ...given({ enableChunkedContext }, ['enableChunkedContext']),
    ...chunking(options, enableChunkedContext === true),
    kvCacheConfig: given({ ...options, enableBlockReuse, hostCacheSize }, [
      'maxTokens',
      'freeGpuMemoryFraction',
      'maxAttentionWindow',
      'sinkTokenLength',
      'enableBlockReuse',
      'hostCacheSize',
      'secondaryOffloadMinPriority',
    ]),
  };
  if (memory !== undefined) optionalParams.availableMemory = memory;
  if (draft !== null) optionalParams.draftEnginePath = draft.directory;
  if (kvDtype !== undefined && kvDtype !== 'auto') optionalParams.kvDtype = kvDtype;
  return {
    enginePath: engine.directory,
    modelType,
    maxBeamWidth: options.maxBeamWidth ?? 1,
    schedulerPolicy: options.schedulerPolicy ?? 'GUARANTEED_NO_EVICT',
    optionalParams,
    ...given(options, ['maxQueueSize', 'maxQueueSizePerKey', 'fairQueueing']),
  };
}

/** Where prompts run in chunks, those of others do not wait for a long one. */
function chunking(
  { chunkingPolicy, maxChunkMs }: ModelOptions,
  isChunked: boolean,
): Pick<OptionalParams, 'chunkingPolicy' | 'maxChunkMs'> {
  if (!isChunked) return given({ chunkingPolicy, maxChunkMs }, ['chunkingPolicy', 'maxChunkMs']);
  return {
    chunkingPolicy: chunkingPolicy ?? DEFAULT_CHUNKING_POLICY,
    maxChunkMs: maxChunkMs ?? 'auto',
  };
}

/** The fields that are not undefined. */
function given<T extends object, K extends keyof T>(
  from: T,
  names: readonly K[],
): { [Name in K]?: Exclude<T[Name], undefined> } {
  const entries = names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]);
  return Object.fromEntries(entries) as { [Name in K]?: Exclude<T[Name], undefined> };
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

/** Such as 'bf16', or 'int4, output int8'. */
export function precisionsOf({ manifest: { precision, outputPrecision } }: Engine): string {
  return precision === outputPrecision ? precision : `${precision}, output ${outputPrecision}`;
}

export function fingerprint(engine: Engine): string {
  const identity = `${engine.manifest.source.hash}\0${precisionsOf(engine)}\0${skeinVersion()}`;
  return `fp_${createHash('sha256').update(identity).digest('hex').slice(0, 12)}`;
}
