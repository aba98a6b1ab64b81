import { warn } from '../../base/error-reporter.js';
import type { IterationStats } from '../../callbacks/gpt-manager-options.js';
import type { EngineInfo } from '../../callbacks/worker-messages.js';
import type { Engine } from '../../engine/building/engine.js';
import { type CloseOptions, InProcessHost, type InProcessHostOptions } from '../../host/in-process-host.js';
import type { AvailableMemory } from '../../kvcache/available-memory.js';
import { eosTokenIds } from '../../models/checkpoints/config-values.js';
import { blocksToCompletion } from '../../scheduler/tokens/block-needs.js';
import type { ModelCodec } from '../generation/model-codec.js';
import { lateFetcher } from '../generation/pictures/fetch/late-fetcher.js';
import type { TextModel } from '../generation/text-model.js';
import type { ModelAdapters } from './adapters/model-adapters.js';
import type { LoadedBase } from './adapters/start-adapters.js';
import { type FoundEngines, findEngines } from './find-engines.js';
import { hostOptions } from './host-options.js';
import type { KvEvents } from './kv-events/kv-events.js';
import { LatestStats } from './latest-stats.js';
import { infoReader } from './model-info.js';
import type { ModelOptions } from './model-options.js';
import type { OpenSight } from './pictures/open-sight.js';
import { hasSight, towerParams } from './pictures/sight-memory.js';
import type { ModelInfo, RunningModel } from './running-model.js';
import { type HostListeners, startEngine } from './start-engine.js';

/**
 * Builds the engine if it is not in the cache, and starts it.
 * @throws CheckpointError, EngineError, AddonError, each with one sentence about what is wrong.
 */
export async function loadModel(options: ModelOptions): Promise<RunningModel<'generator'>> {
  return startModel(options, await findEngines(options));
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
  const sight = await sightOf(options, engine, codec, loaded);
  const readInfo = infoReader(options, engine);
  const infoOf = (engineInfo: EngineInfo): ModelInfo => {
    const read = readInfo(engineInfo);
    return { ...read, remarks: [...read.remarks, ...remarksOf(sight.fields)] };
  };
  const info = infoOf(loaded);
  const { numBlocks: maxBlocks } = loaded;
  const model = { ...textModelOf(options, host, codec, loaded, info), ...sight.fields };
  const { adapters: room, executor } = loaded;
  const forget = (taskId: bigint) => host.forgetAdapter(taskId);
  const { config } = engine.manifest;
  const base = { model, config, room, executor, inFlight: () => host.adaptersInFlight(), forget };
  const adapters = await adaptersOf(options, base).catch(async (error: unknown) => {
    await Promise.all([running.close({ abort: true }), sight.close()]);
    kvEvents?.close();
    throw error;
  });
  kvEvents?.nameAdapters(adapters);
  const close = async (how?: CloseOptions) => {
    await Promise.all([adapters?.close(), sight.close(), running.close(how)]);
    kvEvents?.close();
  };
  const { opened } = sight;
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
      ...(opened && { pictures: () => opened.sight.counts }),
      onStats: (listener) => events.onStats(listener),
    },
    statsJson: () => latest.json(),
    watchFormation: (listener) => host.watchFormation(listener),
    resetCache: () => host.resetCache(),
    ...(opened && { seesWith: opened }),
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

const remarksOf = ({ whyBlind }: Pick<TextModel, 'whyBlind'>) =>
  whyBlind === undefined ? [] : [`It takes no pictures: ${whyBlind}`];

interface LoadedSight {
  fields: Pick<TextModel, 'sight' | 'whyBlind' | 'pictureSources'>;
  /** null: it takes no pictures. */
  opened: OpenSight | null;
  close(): Promise<void>;
}

/** What the model sees with, where it does; its code is imported by models of a wrapper alone. */
async function sightOf(
  options: ModelOptions,
  engine: Engine,
  codec: ModelCodec,
  { vocabSize, executor }: EngineInfo,
): Promise<LoadedSight> {
  const nothing = { fields: {}, opened: null, close: async () => {} };
  if (!hasSight(engine.directory)) return nothing;
  const { openSight } = await import('./pictures/open-sight.js');
  const { directory, manifest } = engine;
  const params = towerParams(options);
  const model = { directory, config: manifest.config, executor };
  const opened = openSight({ ...model, codec, vocabSize, params });
  if (typeof opened === 'string') return { ...nothing, fields: { whyBlind: opened } };
  const pictureSources = options.allowImageUrls ? { fetched: lateFetcher()('') } : undefined;
  return { fields: { sight: opened.sight, pictureSources }, opened, close: opened.close };
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

/** Passes the cache's events to all listeners; empty without any: then the engine makes none. */
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

/**
 * True where `count` sequences fit together into one iteration, into the pool and into the attention window.
 */
function fitTogether(engine: EngineInfo, count: number, promptLength: number, maxNewTokens: number): boolean {
  const { maxSequences, maxNumTokens, maxAttentionWindow, numBlocks, tokensPerBlock } = engine;
  if (count > Math.min(maxSequences, maxNumTokens)) return false;
  if (maxAttentionWindow !== null && promptLength + maxNewTokens > maxAttentionWindow) return false;
  const sequences = { promptLength, maxNewTokens, beamWidth: count, blocksHeld: 0 };
  const pool = { tokensPerBlock, maxAttentionWindow: Number.POSITIVE_INFINITY };
  return blocksToCompletion(sequences, pool) <= numBlocks;
}
