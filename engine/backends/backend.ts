import { SkeinError } from '../../base/skein-error.js';
import type { InferParameters, InferSequence, InferTensor } from '../../callbacks/infer/infer-types.js';
import type { ModelCall, ModelCallResponse } from '../../callbacks/infer/instance-messages.js';
import type { ModelConfig } from '../../models/repository/model-config.js';
import type { InstanceKind } from '../../models/repository/model-parameters.js';

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
  /** Its instances take `rows` of a batch, and so models with sequences. */
  readonly runsSequences: boolean;
  /** The file in a version's folder where the configuration names none. */
  readonly defaultFilename: string;
  /** What its instances run in where the configuration does not say: a process where what they run can end it. */
  readonly instanceKind: InstanceKind;
  /** Models are given the parameters of their requests, on which their answers may depend. */
  readonly readsParameters?: boolean;
  /** Why its instances have to be processes, as a sentence begins; absent: they may be threads. */
  readonly onlyInProcess?: string;
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
  /** Bytes that the states of its sequences may take together. */
  maxStateBytes: number;
}

/** What an instance may ask of its host. */
export interface InstanceServices {
  /** Asks another model, in the middle of `execute`. Rejects with what that model says where it cannot answer. */
  infer(call: ModelCall): Promise<readonly ModelCallResponse[]>;
  /** Awaits code of a model. @param what it is, as a sentence begins @throws BackendError where nothing is left that could settle its promise */
  settled<T>(what: string, run: () => T | Promise<T>): Promise<T>;
  /**
   * Reports an error to the server's log, which belongs to no request or says more than its request is given.
   * A few per second are logged.
   */
  report(error: Error): void;
}

/** @throws an Error whose message says why the model cannot be opened */
export type OpenInstance = (setup: InstanceSetup, services: InstanceServices) => Promise<Instance>;

/** The sequence of a request as an instance sees it. */
export interface RequestSequence extends InferSequence {
  /** Another one for each sequence of this version of the model. */
  readonly number: number;
  /** Its row of the batch. */
  readonly slot: number;
}

/** A request as an instance sees it. */
export interface InstanceRequest {
  readonly id: string;
  /** null: the model has no sequences. */
  readonly sequence: RequestSequence | null;
  /** Those that the client has sent, and of a sequence its control inputs and states. Their data is the instance's own until `execute` is done, and gone after that. */
  readonly inputs: readonly InferTensor[];
  /** Names of the outputs that are wanted; null: all of them. */
  readonly outputs: readonly string[] | null;
  readonly parameters: InferParameters;
  /** Rows; 1 where the model takes no batches. */
  readonly batchSize: number;
  /** W3C Trace Context, for what is asked of others on its behalf; null: it is not traced. */
  readonly traceparent: string | null;
  /**
   * Hands on an answer, whose data is copied at once: one, or any number where the model is decoupled. An answer that is not what the
   * configuration says fails the request; so does a second one of a model that is not decoupled. Outputs that are states are kept for the next
   * request of the sequence, and go to the client where it wants them and the configuration lists them.
   */
  send(outputs: readonly InferTensor[], parameters?: InferParameters): void;
  /** Resolves when another answer of a decoupled model would not have to wait. Who does not await it fails the request beyond a bound. */
  readonly room: Promise<void>;
  /** It has ended or failed, or no client waits for it any more: what is sent now is dropped. */
  readonly isOver: boolean;
  /** The client has left, as far as is known. Only for decoupled models, which may have much left to do. */
  readonly isCancelled: boolean;
  /** Has the request run once more in the instance's next batch, in the place of its end. Of models with iterative_sequence. */
  reschedule(): void;
  /** It was put back so, and has not failed. */
  readonly isAgain: boolean;
  /** No answer follows. A request that was neither ended nor failed when `execute` is done is ended then. */
  end(): void;
  /** This request has failed, and no other one. */
  fail(message: string): void;
}

/** One or several rows of a batch: a request's, or one that is empty. */
export interface BatchRow {
  /** null: a row without a request, whose output is dropped. */
  readonly request: InstanceRequest | null;
  readonly inputs: readonly InferTensor[];
  /** Rows. */
  readonly batchSize: number;
}

/**
 * A model as it runs in one worker. With `openInstance` its steps are the life of a worker of the AMD Inference Server:
 *
 *   openInstance (init)  allocate  acquire  execute, for each batch (run)  release  deallocate  close (destroy)
 */
export interface Instance {
  /** Takes the memory that it needs besides that of its batches. */
  allocate?(): void | Promise<void>;
  /** Takes devices, and does whatever else is costly. */
  acquire?(): void | Promise<void>;
  /**
   * Runs a batch. What it throws fails every request of the batch that has not ended.
   * @param rows of a batch of sequences, among them empty ones where each sequence has its own row; absent: the requests', in their order
   */
  execute(requests: readonly InstanceRequest[], rows?: readonly BatchRow[]): void | Promise<void>;
  release?(): void | Promise<void>;
  deallocate?(): void | Promise<void>;
  close(): void | Promise<void>;
}

/** A model's files cannot be used, or its backend cannot run here. */
export class BackendError extends SkeinError {
  override name = 'BackendError';
  override readonly code = 'SKEIN_BACKEND';
}

/** The module that the worker of an instance runs: a file next to this one, also where both are bundled. */
export const instanceWorkerScript = (): URL => new URL('./instance-worker.js', import.meta.url);
