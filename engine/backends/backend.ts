import type { InferParameters, InferTensor } from '../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../models/repository/model-config.js';

/** A version of a model in a repository. */
export interface ModelFiles {
  /** The folder of the model: NAME. */
  directory: string;
  /** The folder of the version: NAME/1. */
  versionDirectory: string;
  version: string;
}

/** Those parts of a configuration that a backend can tell by looking at the model's files. */
export type ToldConfig = Partial<
  Pick<ModelConfig, 'input' | 'output' | 'max_batch_size' | 'model_transaction_policy'>
>;

/**
 * Runs models of one kind, such as ONNX files. It is known on the host's thread; its instances live in workers, each a
 * thread or a process that loads `entry`.
 */
export interface Backend {
  /** As `backend` of a configuration names it. */
  readonly name: string;
  /** Values of `platform` that mean this backend. */
  readonly platforms: readonly string[];
  /** The file in a version's folder where the configuration names none. */
  readonly defaultFilename: string;
  /** Why it cannot run here, with what would help; null: it can. */
  problem(): Promise<string | null>;
  /** What the files say of the model, for what the configuration leaves out. @throws BackendError for a model that cannot be read */
  describe(files: ModelFiles, config: Partial<ModelConfig>): Promise<ToldConfig>;
  /** Module that exports `openInstance`: an OpenInstance. */
  readonly entry: URL;
}

export interface InstanceSetup {
  files: ModelFiles;
  config: ModelConfig;
  /** NAME_0, NAME_1, ... */
  instanceName: string;
}

export type OpenInstance = (setup: InstanceSetup) => Promise<Instance>;

/** A request as an instance sees it. */
export interface InstanceRequest {
  readonly id: string;
  readonly inputs: readonly InferTensor[];
  /** null: all of them. */
  readonly outputs: readonly string[] | null;
  readonly parameters: InferParameters;
  /** Hands on an answer: once, or any number of times where the model is decoupled. */
  send(outputs: readonly InferTensor[], parameters?: InferParameters): void;
  /** No answer follows. A request that was neither ended nor failed when `execute` is done is ended then. */
  end(): void;
  /** This request has failed, and no other one. */
  fail(message: string): void;
}

/** A model as it runs in one worker; its steps are the worker's life cycle of the AMD Inference Server. */
export interface Instance {
  /** Runs a batch. What it throws fails every request of the batch that has not ended. */
  execute(requests: readonly InstanceRequest[]): void | Promise<void>;
  close(): void | Promise<void>;
}
