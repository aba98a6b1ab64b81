import { retell, textOf } from '../../base/skein-error.js';
import { defaultThreads } from '../../base/topology.js';
import { weightBytesOf } from '../../engine/directory/engine-directory.js';
import type { FixedMemory } from '../../engine/executors/memory-budget.js';
import { availableMemory } from '../../kvcache/available-memory.js';
import { DEFAULT_REVISION } from '../hub/local-model.js';
import { RemoteModels } from '../hub/remote-models.js';
import { hubSettings } from '../hub/settings.js';
import { withFlagNames } from '../options/flag-names.js';
import { keepAliveMs } from '../options/keep-alive.js';
import type { ModelLife } from '../server/answering/model-life.js';
import { Downloads } from '../serving/catalogue/downloads.js';
import { Measures } from '../serving/catalogue/measures.js';
import { ModelCatalogue } from '../serving/catalogue/model-catalogue.js';
import { ReadingSpeed } from '../serving/catalogue/reading-speed.js';
import type { LiveModels } from '../serving/model-directory.js';
import type { ModelOptions } from '../serving/model-options.js';
import { findEnginesAside } from '../serving/on-demand/find-engines-aside.js';
import { measureAside } from '../serving/on-demand/measure-aside.js';
import { ModelPulls } from '../serving/on-demand/model-pulls.js';
import { ModelStore } from '../serving/on-demand/model-store.js';
import {
  type MeasuredModel,
  type ModelLoader,
  OnDemandModels,
} from '../serving/on-demand/on-demand-models.js';
import type { ModelSource, ServedVersion } from '../serving/repository/model-source.js';
import type { ServingRepository } from '../serving/repository/serving-repository.js';
import type { RunningModel } from '../serving/running-model.js';
import type { ServedModel } from '../serving/served-model.js';
import type { Config, ConfiguredModel } from '../settings/config.js';
import { loadingOptions } from './loading-options.js';
import { type Around, versionOf } from './model-repository.js';
import { modelsFolder } from './models-folder.js';

/** Share of the free memory that models on demand have, where no option says how much. */
const SHARE_OF_FREE = 0.8;

/** What models on demand are made of. */
export interface OnDemandParts extends Around {
  models: LiveModels;
  repository: ServingRepository;
  /** Models of the command line, which run already. */
  running: readonly RunningModel[];
}

/** The models of --models-dir; null: there is no such folder. */
export function onDemand(config: Config, parts: OnDemandParts): ModelLife | null {
  const folder = modelsFolder(config);
  if (folder === null) return null;
  const { keepAlive, maxQueuedRequests, modelLoadTimeoutSeconds } = config;
  const store = new ModelStore(folder.path);
  const memoryBytes = config.modelMemoryBytes ?? freeBeside(parts.running);
  const models = new OnDemandModels({
    store,
    models: parts.models,
    loader: loaderOf(config, parts),
    limits: {
      memoryBytes,
      keepAliveMs: keepAliveMs(keepAlive)!,
      maxWaiting: maxQueuedRequests,
      loadTimeoutMs: 1000 * modelLoadTimeoutSeconds,
    },
    onError: (error) => parts.log.error({ err: error }, 'models on demand'),
  });
  const settings = () => ({ ...hubSettings(), cacheFolder: folder.path });
  const pulls = new ModelPulls(async (repository, on) => {
    const { pull } = await import('../hub/pull.js');
    return pull(repository, { settings: settings(), revision: DEFAULT_REVISION, ...on });
  });
  const speed = new ReadingSpeed(
    () => memorySpeed(config.threads),
    () => parts.models.list().every(isIdle),
  );
  const catalogue = new ModelCatalogue({
    store,
    models: parts.models,
    downloads: new Downloads(pulls),
    remote: new RemoteModels(settings),
    measures: new Measures(async (path) => {
      await speed.settled;
      return measureAside(path);
    }),
    speed,
    memoryBytes,
  });
  return { store, isShared: folder.isShared, models, pulls, catalogue };
}

function isIdle({ statistics }: ServedModel): boolean {
  const { running, waiting } = statistics.counts();
  return running + waiting === 0;
}

/** Share of the free memory that is read from to measure it. */
const SHARE_TO_READ = 1 / 8;

/** Bytes a second that memory gives to the threads that compute. */
async function memorySpeed(threads = defaultThreads()): Promise<number> {
  const { readingRate } = await import('../doctor/reading-rate.js');
  return readingRate(threads, Math.floor((SHARE_TO_READ * availableMemory().bytes) / threads));
}

/** Memory that is left once the caches of the models that run are full. */
function freeBeside(running: readonly RunningModel[]): number {
  const caches = running.map(({ kind, info }) => (kind === 'generator' ? info.kvCacheBytes : 0));
  const taken = caches.reduce((sum, bytes) => sum + bytes, 0);
  return Math.floor(SHARE_OF_FREE * Math.max(0, availableMemory().bytes - taken));
}

function loaderOf(config: Config, { repository, ...server }: OnDemandParts): ModelLoader {
  return {
    measure: ({ name, path }, signal) => inUsersWords(() => measured(name, path, signal)),
    unload: (name) => repository.takeAway(name),
  };

  async function measured(name: string, path: string, signal: AbortSignal): Promise<MeasuredModel> {
    const entry: ConfiguredModel = { name, aliases: [], model: path, options: {}, adapters: {} };
    const options: ModelOptions = { ...loadingOptions(entry, config), revision: undefined, signal };
    const engines = await findEnginesAside(options);
    const { needsOf, startFound } = await import('../serving/load-models.js');
    // An executor of the user's own says nothing of its memory.
    const needs = options.executorModule === undefined ? await needsOf(options, engines) : null;
    return {
      fixedBytes: needs === null ? weightBytesOf(engines.engine.manifest) : bytesOf(needs.fixed),
      mostCacheBytes: needs?.mostBytes ?? 0,
      load: (cacheBytes, loading) => {
        const from = `the share of ${name} in --model-memory-bytes`;
        const memory = needs === null ? undefined : { bytes: cacheBytes, from };
        const start = async (closing: AbortSignal): Promise<ServedVersion> => {
          const given = { ...options, signal: AbortSignal.any([loading, closing]) };
          const loaded = await startFound(given, engines, memory);
          loaded.onError((error) => server.log.error({ err: error, model: name }, 'engine error'));
          return versionOf(entry, '1', loaded, server);
        };
        return inUsersWords(() => repository.bring(name, sourceOf(start)));
      },
    };
  }
}

function sourceOf(start: (closing: AbortSignal) => Promise<ServedVersion>): ModelSource {
  return {
    plan: async (_, { signal }) => ({ identity: null, versions: ['1'], start: () => start(signal) }),
  };
}

/** Bytes that a model takes whatever its cache is. */
export function bytesOf({ packedWeights, storedWeights, workspace }: FixedMemory): number {
  return packedWeights + storedWeights + workspace;
}

/** Errors of the engine with the user's names of options. */
async function inUsersWords<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Error) retell(error, withFlagNames(textOf(error)));
    throw error;
  }
}
