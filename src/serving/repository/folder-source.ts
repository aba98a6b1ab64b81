import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { onAbort } from '../../../base/on-abort.js';
import type { Backend } from '../../../engine/backends/backend.js';
import { findBackend } from '../../../engine/backends/find-backend.js';
import { checkInitialStates } from '../../../engine/backends/sequences/state-tensors.js';
import { checkConfig, checkModelFilename } from '../../../models/repository/check-config.js';
import { completeConfig } from '../../../models/repository/complete-config.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { ModelConfigError } from '../../../models/repository/model-config-error.js';
import { ownParameters } from '../../../models/repository/model-parameters.js';
import { readLabels } from '../../../models/repository/read-labels.js';
import { parseSentConfig, readModelConfig } from '../../../models/repository/read-model-config.js';
import type { ScannedModel } from '../../../models/repository/repository-scan.js';
import { chooseVersions } from '../../../models/repository/versions.js';
import { checkWarmupFiles } from '../../../models/repository/warmup.js';
import { fieldError, placed, type WrittenConfig } from '../../../models/repository/written-config.js';
import type { OnCall } from '../answer-call.js';
import { BatchedModel } from '../batched/batched-model.js';
import { cachedModel } from '../cache/cached-model.js';
import type { ResponseCache } from '../cache/response-cache.js';
import { EnsembleModel } from '../ensembles/ensemble-model.js';
import {
  isEnsemble,
  type MemberDirectory,
  membersOf,
  type PlannedEnsemble,
  plannedEnsemble,
} from '../ensembles/load-ensemble.js';
import { type PlannedPart, plannedPart } from '../parts/load-part.js';
import { partOf, refuseReshape } from '../parts/part-config.js';
import { PartModel } from '../parts/part-model.js';
import type { RateLimits } from '../rate-limits.js';
import type { Adaptation, AskedLoad, LoadPlan, ModelSource, ServedVersion } from './model-source.js';
import { uploadedModel } from './uploaded-model.js';

/** What models of folders need of the server around them. */
export interface FolderServices {
  /** All models by name: ensembles find their members there. */
  members: MemberDirectory;
  /** Answers what the code of a model asks of other models. */
  onCall: OnCall;
  /** Failures that belong to no request, of the model of this name. */
  onError: (name: string, error: Error) => void;
  /** Answers of models whose configuration wants them kept; null: none are. */
  cache: ResponseCache | null;
  /** What instances of all models share; null: `rate_limiter` is ignored. */
  limits: RateLimits | null;
  /** Starts a model of texts: of a version's folder, with the configuration's parameters. */
  startText: (
    name: string,
    version: string,
    versionDirectory: string,
    parameters: Readonly<Record<string, string>>,
  ) => Promise<ServedVersion>;
}

/** A model in a folder of a repository. */
export class FolderSource implements ModelSource {
  readonly #scanned: ScannedModel;
  readonly #services: FolderServices;
  /** What the folder has; undefined: it was not read yet. */
  #written: WrittenConfig | null | undefined;

  constructor(scanned: ScannedModel, services: FolderServices) {
    this.#scanned = scanned;
    this.#services = services;
  }

  needs(_name: string, { config }: Pick<AskedLoad, 'config'>): readonly string[] {
    try {
      const written = this.#configOf(this.#scanned, config);
      if (written === null) return [];
      const whole = partOf(written);
      return whole === null ? membersOf(written) : [whole];
    } catch {
      return []; // the load will report what is wrong
    }
  }

  #configOf(model: ScannedModel, sent: string | undefined): WrittenConfig | null {
    if (sent !== undefined) return parseSentConfig(sent);
    if (model !== this.#scanned) return readModelConfig(model.directory);
    if (this.#written === undefined) this.#written = readModelConfig(model.directory);
    return this.#written;
  }

  async plan(name: string, asked: AskedLoad): Promise<LoadPlan> {
    const { problem } = this.#scanned;
    if (asked.files !== undefined) {
      const uploaded = await uploadedModel(this.#scanned.name, asked.files);
      return uploaded.plan(() => this.#planOf(name, uploaded.model, asked));
    }
    if (problem !== null) throw new ModelConfigError(problem);
    return this.#planOf(name, this.#scanned, asked);
  }

  #planOf(name: string, model: ScannedModel, asked: AskedLoad): LoadPlan {
    const written = this.#configOf(model, asked.config);
    const policy = written?.fields.version_policy ?? { latest: { num_versions: 1 } };
    const versions = chooseVersions(policy, model.versions);
    if (versions.length === 0) {
      throw new ModelConfigError(
        `at least one version must be available under the version policy of model '${name}': ${model.directory} has ${model.versions.join(', ') || 'none'}`,
      );
    }
    const { values, addedInstances, config, files } = asked;
    const isRepeatable = config === undefined && files === undefined;
    const identity = [model.stamp, values, addedInstances];
    if (written !== null && isEnsemble(written)) {
      const ensemble = this.#ensemble(name, model.name, written, asked);
      return {
        identity: isRepeatable ? JSON.stringify([...identity, ensemble.identity]) : null,
        versions,
        start: async (version) => this.#startEnsemble(ensemble, version, model.directory),
      };
    }
    if (written !== null && partOf(written) !== null) {
      const part = this.#part(name, model.name, written, asked);
      return {
        identity: isRepeatable ? JSON.stringify(identity) : null,
        versions,
        start: async (version) => startPart(part, version, model.directory),
      };
    }
    return {
      identity: isRepeatable ? JSON.stringify(identity) : null,
      versions,
      start: (version, running) =>
        this.#start(name, { ...model, versions }, version, { written, asked, running }),
    };
  }

  #ensemble(
    name: string,
    folder: string,
    written: WrittenConfig,
    { values, addedInstances }: AskedLoad,
  ): PlannedEnsemble {
    if (addedInstances > 0)
      throw new ModelConfigError(`the ensemble '${name}' has no instances, and takes no further one`);
    const planned = plannedEnsemble(name, folder, written, this.#services.members);
    const { config } = planned;
    return { ...planned, config: { ...config, parameters: withValues(config, values) } };
  }

  #part(
    name: string,
    folder: string,
    written: WrittenConfig,
    { values, addedInstances }: AskedLoad,
  ): PlannedPart {
    if (addedInstances > 0 || Object.keys(values).length > 0)
      throw new ModelConfigError(
        `'${name}' is a part of a model of texts, and takes no parameters of a load`,
      );
    return plannedPart(name, folder, written, this.#services.members);
  }

  #startEnsemble({ config, plan }: PlannedEnsemble, version: string, modelDirectory: string): ServedVersion {
    for (const { label_filename: labels } of config.output)
      if (labels !== '') readLabels(modelDirectory, labels);
    const { members } = this.#services;
    const find = (member: string, of: string) => members.find(member, of);
    const model = new EnsembleModel({ config, plan, version, modelDirectory, find });
    return this.#served(model, { readsParameters: true, isStuck: () => false });
  }

  async #start(
    name: string,
    model: ScannedModel,
    version: string,
    {
      written,
      asked: { values, addedInstances, signal },
      running,
    }: { written: WrittenConfig | null; asked: AskedLoad; running: ServedVersion | undefined },
  ): Promise<ServedVersion> {
    const versionDirectory = join(model.directory, version);
    const files = { directory: model.directory, versionDirectory, version };
    const origin = written ?? noConfig(model.directory);
    const filenames = await readdir(versionDirectory);
    const backend = await inConfig(origin, () => findBackend(origin.fields, filenames));
    const texts = Object.entries(values).map(([key, value]) => [key, String(value)] as const);
    if (backend === null) {
      refuseOfTexts(written);
      const numVersions = model.versions.length;
      if (numVersions > 1) {
        throw new ModelConfigError(
          `it is a model of texts, of which one version is served at a time; version_policy has ${numVersions}`,
        );
      }
      const own = Object.entries(origin.fields.parameters ?? {}).map(
        ([key, { string_value: value }]) => [key, value ?? ''] as const,
      );
      return this.#services.startText(
        name,
        version,
        versionDirectory,
        Object.fromEntries([...own, ...texts]),
      );
    }
    const problem = await backend.problem();
    if (problem !== null) throw new ModelConfigError(problem);
    const config = await completed(name, model, files, origin, backend);
    const whole = {
      ...config,
      parameters: withValues(config, values),
      instance_group: config.instance_group.map((group, i) =>
        i === 0 ? { ...group, count: group.count + addedInstances } : group,
      ),
    };
    checkConfig(whole, origin);
    for (const { label_filename: labels } of whole.output) {
      if (labels !== '') readLabels(model.directory, labels);
    }
    checkWarmupFiles(whole, origin, model.directory);
    signal.throwIfAborted();
    const own = ownParameters(whole, origin, backend);
    if (whole.sequence_batching !== undefined) {
      if (!backend.runsSequences) {
        const what = `is not run by the backend '${backend.name}', which keeps no states`;
        throw fieldError(origin, ['sequence_batching'], `${what}.`);
      }
      await checkInitialStates(whole.sequence_batching, model.directory, origin, own.maxStateBytes);
    }
    this.#checkLimits(whole, origin);
    const { filesStamp } = model;
    if (running !== undefined && (await running.adapt?.({ config: whole, filesStamp, signal })))
      return running;
    const batched = new BatchedModel({
      backend,
      files,
      config: whole,
      own,
      limits: this.#services.limits,
      onCall: this.#services.onCall,
      onError: (error) => this.#services.onError(name, error),
    });
    try {
      await within(batched.ready, own.initializeTimeoutMs, signal);
    } catch (error) {
      await batched.close({ abort: true, terminateAfterMs: 0 });
      throw error;
    }
    const { readsParameters } = backend;
    const served = {
      ...this.#served(batched, { readsParameters, isStuck: () => batched.isStuck() }),
      adapt: (to: Adaptation) => adapted(batched, filesStamp, to),
    };
    return whole.sequence_batching === undefined ? served : { ...served, sequences: batched };
  }

  /** @throws ModelConfigError for instances that could never run */
  #checkLimits({ instance_group: groups }: ModelConfig, origin: WrittenConfig): void {
    const problem = this.#services.limits?.problem(groups) ?? null;
    if (problem === null) return;
    const { need, limit, group, resource } = problem;
    const at = ['instance_group', group, 'rate_limiter', 'resources', resource];
    if (limit !== null) {
      const given = `--rate-limit-resource gives ${limit} of '${need.name}'`;
      throw fieldError(origin, [...at, 'count'], `is ${need.count}; ${given}.`);
    }
    const other = need.isGlobal ? 'a resource of the device' : 'global';
    const why = `is ${need.isGlobal} for '${need.name}', which is ${other} for instances that are loaded or listed before`;
    throw fieldError(origin, [...at, 'global'], `${why}.`);
  }

  /** The model, wrapped in the response cache where it wants that. */
  #served(
    model: BatchedModel | EnsembleModel,
    { readsParameters, isStuck }: { readsParameters: boolean | undefined; isStuck: () => boolean },
  ): ServedVersion {
    const cached = cachedModel(model, this.#services.cache, readsParameters);
    return {
      model: cached ?? model,
      served: null,
      close: (options) => {
        cached?.close();
        return model.close(options);
      },
      isStuck,
    };
  }
}

/** Becomes what a load asks for without a reload. False: it takes one. */
async function adapted(
  model: BatchedModel,
  filesStamp: string,
  { config, filesStamp: asked, signal }: Adaptation,
): Promise<boolean> {
  if (filesStamp === '' || asked !== filesStamp || !model.canBecome(config)) return false;
  await model.become(config, (ready, limitMs) => within(ready, limitMs, signal));
  return true;
}

function startPart({ config, work }: PlannedPart, version: string, modelDirectory: string): ServedVersion {
  const model = new PartModel({ config, version, modelDirectory, work });
  return { model, served: null, close: (options) => model.close(options), isStuck: () => false };
}

/** The configuration's parameters, and values that came with the load in their places. */
function withValues({ parameters }: ModelConfig, values: AskedLoad['values']): ModelConfig['parameters'] {
  const given = Object.entries(values).map(([key, value]) => [key, { string_value: String(value) }]);
  return { ...parameters, ...Object.fromEntries(given) };
}

/** @throws ModelConfigError for what means nothing to a model of texts, whose answers are drawn, and which is warm when it is loaded */
function refuseOfTexts(written: WrittenConfig | null): void {
  if (written === null) return;
  const { response_cache: cache, model_warmup: samples = [] } = written.fields;
  if (cache?.enable === true) {
    const why = 'is of models whose answers follow from their inputs; this one generates or encodes texts.';
    throw fieldError(written, ['response_cache'], why);
  }
  const ofTensors = 'is of models that take tensors; this one takes texts.';
  refuseReshape(written, ofTensors);
  if (samples.length > 0) throw fieldError(written, ['model_warmup'], ofTensors);
  for (const field of ['batch_input', 'batch_output'] as const) {
    if ((written.fields[field] ?? []).length > 0) throw fieldError(written, [field], ofTensors);
  }
}

/** Resolves with the instances, or rejects once they have taken too long. @param limitMs 0: they may take any time */
async function within(ready: Promise<unknown>, limitMs: number, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  let release = () => {};
  const given = new Promise<never>((_, reject) => {
    release = onAbort(signal, () => reject(signal.reason));
    const message = `its instances took longer to start than the ${limitMs} ms of initialize_timeout_ms`;
    if (limitMs > 0) timer = setTimeout(() => reject(new ModelConfigError(message)), limitMs);
  });
  try {
    await Promise.race([ready, given]);
  } finally {
    clearTimeout(timer);
    release();
  }
}

/**
 * Replaces the configuration of a folder that has none: the backend states everything, or an error says what
 * there should be.
 */
function noConfig(directory: string): WrittenConfig {
  const origin = `${directory}, which has no config.yaml, config.pbtxt or config.json`;
  return { fields: {}, origin, lineOf: () => null };
}

/** Does what may find something wrong in a configuration. @throws with the place of the field that is wrong */
async function inConfig<T>(origin: WrittenConfig, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw placed(origin, error);
  }
}

async function completed(
  name: string,
  { name: folder }: ScannedModel,
  files: Parameters<Backend['describe']>[0],
  origin: WrittenConfig,
  backend: Backend,
): Promise<ModelConfig> {
  checkModelFilename(origin.fields, origin);
  const told = await inConfig(origin, () => backend.describe(files, origin.fields));
  const { name: own, defaultFilename, platforms } = backend;
  return completeConfig(origin, {
    name,
    folder,
    backend: own,
    platform: platforms[0],
    defaultFilename,
    told,
  });
}
