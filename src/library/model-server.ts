import { onAbort } from '../../base/on-abort.js';
import { callback, isObject, rule } from '../../base/option-values.js';
import { InferError } from '../../callbacks/infer/infer-error.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { ModelConfig } from '../../models/repository/model-config.js';
import { optionFault, type Rules } from '../options/option-faults.js';
import { answerCall } from '../serving/answer-call.js';
import type { InferModel } from '../serving/infer-model.js';
import type { ModelOptions } from '../serving/model-options.js';
import type { IndexRow, LoadParameters } from '../serving/model-repository.js';
import {
  type ModelMetadata,
  type ModelStatistics,
  metadataOf,
  modelsCounted,
  statisticsOf,
} from '../serving/protocol/describe-model.js';
import type { FolderServices } from '../serving/repository/folder-source.js';
import { modelFolders } from '../serving/repository/model-folders.js';
import { ServingRepository } from '../serving/repository/serving-repository.js';
import { AnswerQueue } from './inference/answer-queue.js';
import { answerOf, checkCall, type InferAnswer, type InferCall, requestOf } from './inference/infer-call.js';
import { checkCloseOptions } from './options/generate-options.js';

export interface ModelServerOptions {
  /** Folders of models as Triton lays them out, NAME/config.pbtxt and NAME/1/...: code in them is run. */
  modelRepository?: string | readonly string[] | undefined;
  /** Names of models of the folders that are loaded at once. Default: all. */
  loadModels?: readonly string[] | undefined;
  /** Models that generate text, and encoders, by the names that they are to have; their options are those of Skein.load. */
  models?: Readonly<Record<string, ModelOptions>> | undefined;
  /** Failures that belong to no request, such as the end of an instance. Not given: they are warnings of the process. */
  onError?: ((error: Error) => void) | undefined;
}

const isList = (value: unknown) => Array.isArray(value) && value.every((one) => typeof one === 'string');
const RULES: Rules<ModelServerOptions> = {
  modelRepository: rule<string>(
    'a folder, or a list of folders',
    (value) => typeof value === 'string' || isList(value),
  ),
  loadModels: rule<readonly string[]>('a list of names', isList),
  models: rule<object>(
    "an object of names and options such as { gosling: { model: './gosling' } }",
    (value) => isObject(value) && Object.values(value).every(isObject),
  ),
  onError: callback(),
};

/** Milliseconds that an unloaded model may continue to answer. */
const DRAIN_MS = 30_000;

/**
 * A repository of models in this process: the models of `skein serve --model-repository` without a port. Requests of the program share the
 * batches of each model; instances run in threads or processes of their own.
 *
 *   const server = await ModelServer.open({ modelRepository: './models' });
 *   const { outputs } = await server.infer({ model: 'squares', inputs: { X: { data: [1, 2, 3] } } });
 *   console.log(outputs.Y!.data); // Float32Array [1, 4, 9]
 *   await server.close();
 */
export class ModelServer {
  readonly #repository: ServingRepository;
  #isClosed = false;

  private constructor(repository: ServingRepository) {
    this.#repository = repository;
  }

  /**
   * Loads the models. Where one cannot be loaded, none stays.
   * @throws ParameterError for an option that is unknown or of a value that it does not take; InferError with what is wrong with each model
   *   of the folders; ModelConfigError for a folder that is none; CheckpointError and others as Skein.load for those of `models`
   */
  static async open(options: ModelServerOptions): Promise<ModelServer> {
    const fault = optionFault('ModelServer.open', "{ modelRepository: './models' }", options, RULES);
    if (fault !== null) throw new ParameterError(fault.option ?? 'options', fault.message);
    const { modelRepository, loadModels, models = {} } = options;
    const folders = typeof modelRepository === 'string' ? [modelRepository] : modelRepository;
    const repository = openRepository(folders, options.onError ?? warn);
    try {
      await adoptTexts(repository, models);
      if (folders !== undefined) await repository.start(loadModels ?? null);
    } catch (error) {
      await repository.close({ abort: true });
      throw error;
    }
    return new ModelServer(repository);
  }

  /**
   * The answer of a model, batched with its other requests. An aborted signal rejects with its reason.
   * @throws ParameterError for a field of the call; InferError where the model cannot answer it, or is decoupled: its `kind` says which
   */
  async infer(call: InferCall): Promise<InferAnswer> {
    checkCall('infer', call);
    const model = this.#find(call);
    if (model.config.model_transaction_policy.decoupled) {
      throw new InferError(`'${call.model}' gives any number of answers: ask it by stream`, 'unsupported');
    }
    let first: InferAnswer | null = null;
    for await (const answer of this.#ask(model, call)) first ??= answer;
    if (first !== null) return first;
    throw new InferError(`the model '${call.model}' ended the request without an answer`, 'internal');
  }

  /**
   * The answers of a model as they come: any number of a decoupled model, which waits while they are not taken, or one. Leaving the loop
   * ends the request.
   * @throws as infer
   */
  async *stream(call: InferCall): AsyncGenerator<InferAnswer, void, undefined> {
    checkCall('stream', call);
    yield* this.#ask(this.#find(call), call);
  }

  async *#ask(model: InferModel, call: InferCall): AsyncGenerator<InferAnswer, void, undefined> {
    const { signal } = call;
    signal?.throwIfAborted();
    const leaving = new AbortController();
    const queue = new AnswerQueue();
    const release =
      signal === undefined
        ? () => {}
        : onAbort(signal, () => {
            queue.fail(signal.reason as Error);
            leaving.abort(signal.reason);
          });
    let isOver = false;
    try {
      model.infer(requestOf(model.config, call, leaving.signal), queue);
      for (let next = await queue.next(); next !== null; next = await queue.next()) yield answerOf(next);
      isOver = true;
    } finally {
      release();
      queue.leave();
      if (!isOver) leaving.abort(new DOMException('The answers are not taken any more.', 'AbortError'));
    }
  }

  /** What a model takes and gives. @throws InferError for one that there is not */
  metadata(model: string, version = ''): ModelMetadata {
    const found = this.#find({ model, version });
    const versions = this.#repository.versions(model).map((one) => one.version);
    return metadataOf(found, version === '' ? versions : [found.version]);
  }

  /** The whole configuration of a model. @throws InferError for one that there is not */
  config(model: string, version = ''): ModelConfig {
    return this.#find({ model, version }).config;
  }

  /** Counts and times of a model, or of all. @throws InferError for one that there is not */
  statistics(model = '', version = ''): readonly ModelStatistics[] {
    return modelsCounted(this.#repository, model, version).map(statisticsOf);
  }

  /** A model answers. */
  isReady(model: string, version = ''): boolean {
    return this.#repository.isReady(model, version);
  }

  /** All models and versions with their state; with `readyOnly` those that answer. */
  index({ readyOnly = false }: { readyOnly?: boolean } = {}): Promise<readonly IndexRow[]> {
    return this.#repository.index({ readyOnly });
  }

  /**
   * Loads or reloads a model; where that fails the running one stays. Resolves with the name under which it
   * answers.
   * @throws InferError with the reason
   */
  load(model: string, parameters?: LoadParameters): Promise<string> {
    return this.#repository.load(model, parameters);
  }

  /** Ends a model once it has answered what it has. */
  unload(model: string, options?: { unloadDependents?: boolean }): Promise<void> {
    return this.#repository.unload(model, options);
  }

  /** Takes no more requests and frees all models once they have answered what they have; with `abort` at once. */
  async close(options: { abort?: boolean } = {}): Promise<void> {
    checkCloseOptions(options);
    this.#isClosed = true;
    await this.#repository.close(options);
  }

  /** The same as `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #find({ model, version = '' }: Pick<InferCall, 'model' | 'version'>): InferModel {
    if (this.#isClosed)
      throw new InferError(`Request for model '${model}': this ModelServer is closed`, 'unavailable');
    return this.#repository.find(model, version);
  }
}

function openRepository(
  folders: readonly string[] | undefined,
  onError: (error: Error) => void,
): ServingRepository {
  const services: FolderServices = {
    members: {
      find: (name, version) => repository.find(name, version),
      isReady: (name, version) => repository.isReady(name, version),
      rows: () => repository.rows(),
    },
    cache: null,
    limits: null,
    onCall: (call, ...caller) => answerCall(repository.find(call.model, call.version), call, ...caller),
    onError: (_, error) => onError(error),
    startText: async (...model) => (await import('./inference/program-models.js')).loadTextFolder(...model),
  };
  const repository: ServingRepository = new ServingRepository({
    mode: 'explicit',
    drainMs: DRAIN_MS,
    listener: { added: () => {}, removed: () => {} },
    onError,
    ...(folders === undefined ? {} : modelFolders(folders, services)),
  });
  return repository;
}

async function adoptTexts(
  repository: ServingRepository,
  models: Readonly<Record<string, ModelOptions>>,
): Promise<void> {
  const named = Object.entries(models).map(([name, options]) => ({ name, options }));
  if (named.length === 0) return;
  const { GIVEN, givenSource, loadTexts } = await import('./inference/program-models.js');
  const versions = await loadTexts(named);
  for (const [i, { name, options }] of named.entries()) {
    repository.adopt(name, givenSource(name, options), versions[i]!, GIVEN);
  }
}

function warn(error: Error): void {
  process.emitWarning(error);
}
