import { InferError } from '../../callbacks/infer/infer-error.js';
import type { ServerLog } from '../server/web/server-log.js';
import { answerCall } from '../serving/answer-call.js';
import type { ResponseCache } from '../serving/cache/response-cache.js';
import { type LiveModels, namesOf } from '../serving/model-directory.js';
import type { RateLimits } from '../serving/rate-limits.js';
import type { FolderServices } from '../serving/repository/folder-source.js';
import { modelFolders } from '../serving/repository/model-folders.js';
import type { LoadPlan, ModelSource, ServedVersion } from '../serving/repository/model-source.js';
import { ServingRepository } from '../serving/repository/serving-repository.js';
import { textVersion } from '../serving/repository/text-version.js';
import type { ObserveRequest } from '../serving/request-observer.js';
import type { RunningModel } from '../serving/running-model.js';
import type { ServedModel } from '../serving/served-model.js';
import { type Config, type ConfiguredModel, modelOfTexts } from '../settings/config.js';
import { loadingOptions } from './loading-options.js';
import type { LoadedEntry } from './served-model-of.js';

/** Describes a model of the command line to the text routes. */
export type Describe = (entry: ConfiguredModel, loaded: RunningModel) => ServedModel;

/** The server around the models. */
export interface Around {
  describe: Describe;
  log: ServerLog;
  /** Follows requests for the metrics of a model of texts. */
  observe: ObserveRequest;
}

/** Identity of every load of a model of the command line: its options stay what they are. */
const GIVEN = 'command line';

/**
 * The repository of a server: the models of the command line, which run already, and the folders of --model-repository. Models of texts
 * come and go in `models` too.
 * @param shared by all models of the folders: what keeps answers of those that want it (null: none are kept), and what limits their rates
 */
export function modelRepository(
  running: readonly LoadedEntry[],
  config: Config,
  models: LiveModels,
  server: Around,
  { cache = null, limits = null }: { cache?: ResponseCache | null; limits?: RateLimits | null } = {},
): ServingRepository {
  const { log } = server;
  const services: FolderServices = {
    members: {
      find: (name, version) => repository.find(name, version),
      isReady: (name, version) => repository.isReady(name, version),
      rows: () => repository.rows(),
    },
    onCall: (call, ...caller) => answerCall(repository.find(call.model, call.version), call, ...caller),
    onError: (name, error) => log.error({ err: error, model: name }, 'model error'),
    cache,
    limits,
    startText: (name, version, versionDirectory, parameters) => {
      const { model = versionDirectory, ...given } = parameters;
      const entry = modelOfTexts(name, model, given, `parameters of ${name}`);
      return startText(entry, version, config, server);
    },
  };
  const repository: ServingRepository = new ServingRepository({
    mode: config.modelControlMode,
    drainMs: 1000 * config.drainTimeoutSeconds,
    listener: {
      checkNames: (name, version) => {
        const others = version?.served == null ? [] : namesOf(version.served);
        for (const one of new Set([name, ...others])) {
          const isModel = one !== name && repository.holds(one);
          const why =
            models.whyTaken(one, name) ?? (isModel ? `'${one}' is a name of another model already` : null);
          if (why !== null) throw new Error(why);
        }
      },
      added: ({ served }) => {
        if (served !== null) models.add(served);
      },
      removed: ({ served }) => {
        if (served !== null) models.remove(served.id);
      },
    },
    onError: (error) => log.error({ err: error }, 'model repository'),
    ...(config.modelRepository === undefined ? {} : modelFolders(config.modelRepository, services)),
  });
  for (const { entry, loaded } of running) {
    const version = versionOf(entry, '1', loaded, server);
    repository.adopt(entry.name, givenSource(entry, config, server), version, GIVEN);
  }
  return repository;
}

/** A model of texts that starts with its own options and the server's. In a folder, its version's folder holds it, or `model` names it. */
async function startText(
  entry: ConfiguredModel,
  version: string,
  config: Config,
  server: Around,
): Promise<ServedVersion> {
  const { name } = entry;
  const { loadModels } = await import('../serving/load-models.js');
  const [loaded] = await loadModels([{ name, options: loadingOptions(entry, config) }]);
  loaded!.onError((error) => server.log.error({ err: error, model: name }, 'engine error'));
  return versionOf(entry, version, loaded!, server);
}

/** A model that runs, as the repository and the routes know it. */
export function versionOf(
  entry: ConfiguredModel,
  version: string,
  loaded: RunningModel,
  { describe, observe }: Around,
): ServedVersion {
  return textVersion(entry.name, version, loaded, (one) => describe(entry, one), observe);
}

/** A model of the command line, which is reloaded from what the command line says. */
function givenSource(entry: ConfiguredModel, config: Config, server: Around): ModelSource {
  return {
    plan: async (name, { config: given, files, values, addedInstances }): Promise<LoadPlan> => {
      if (
        given !== undefined ||
        files !== undefined ||
        Object.keys(values).length > 0 ||
        addedInstances > 0
      ) {
        throw new InferError(
          'it is a model of the command line, which takes no parameters; --model-repository has models that do',
          'invalid',
        );
      }
      return {
        identity: GIVEN,
        versions: ['1'],
        start: () => startText({ ...entry, name }, '1', config, server),
      };
    },
  };
}
