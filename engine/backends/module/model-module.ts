import type { Datatype } from '../../../callbacks/infer/datatypes.js';
import type { InferParameters } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';

/** Elements of a tensor: an array of their type, FP16 and BF16 as their bits; texts of BYTES as their bytes. */
export type TensorData =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array
  | Uint8Array[];

/** An input of a request. */
export interface ModuleInput {
  readonly name: string;
  readonly datatype: Datatype;
  /** The batch dimension first, where the model has one. */
  readonly shape: readonly number[];
  readonly data: TensorData;
  /** The elements of a BYTES tensor as texts. @throws a TypeError for another one */
  readonly texts: readonly string[];
}

/** An output: its datatype is that of the configuration. */
export interface ModuleOutput {
  /** Default: the batch size and the configuration's sizes, where those are known. */
  shape?: readonly number[];
  /** Numbers of an array or a list, booleans for BOOL, texts or bytes for BYTES. */
  data: TensorData | readonly (number | bigint | boolean | string | Uint8Array)[];
}

export interface ModuleResponse {
  outputs: Readonly<Record<string, ModuleOutput>>;
  parameters?: InferParameters;
}

/** The sequence that a request belongs to. */
export interface ModuleSequence {
  /** Another one for each sequence of this version of the model: what a module that keeps states itself keeps them by. Ids come again. */
  readonly number: number;
  /** A number of 64 bits or a text, as the client gave it. */
  readonly id: bigint | string;
  /** It is the first request of the sequence. */
  readonly start: boolean;
  /** It is the last one. */
  readonly end: boolean;
  /** Its row of the batch: with the strategy `direct` that of all requests of the sequence. */
  readonly slot: number;
}

/** A request that a module answers. */
export interface ModuleRequest {
  readonly id: string;
  /**
   * null: the model has no sequences, or the request is an empty row that belongs to no client: with the
   * strategy `direct` and a control input READY a batch has one for each slot below the highest in use that
   * has no request. What is answered to it goes nowhere.
   */
  readonly sequence: ModuleSequence | null;
  /** What the client sent, and of a sequence its control inputs and states. */
  readonly inputs: Readonly<Record<string, ModuleInput>>;
  /** Names of the outputs that are wanted; null: all of them. */
  readonly outputs: readonly string[] | null;
  readonly parameters: InferParameters;
  /** Rows; 1 where the model takes no batches. */
  readonly batchSize: number;
  /** The header `traceparent` of W3C Trace Context for what the model itself asks of others over a network; null: it is not traced. */
  readonly traceparent: string | null;
  /**
   * Gives an answer at once: one, or any number where the model is decoupled. The promise resolves when there is room for another answer; a
   * request to which more than 10,000 answers or 64 MiB wait to be sent fails.
   */
  send(response: ModuleResponse): Promise<void>;
  /**
   * Of a model with `iterative_sequence`: the request runs once more, in a later batch and in the place of its end. It comes with the same inputs, without
   * START, and with the states that it was answered with.
   */
  reschedule(): void;
  /**
   * The client has left: a decoupled model need not go on with this request. A generator is ended when no
   * client is left.
   */
  readonly isCancelled: boolean;
}

/** A request to another model of the repository. */
export interface ModuleCall {
  model: string;
  /** Default: the latest. */
  version?: string;
  /** `datatype` and `shape` default to those of the data: a list of numbers is FP32, one of texts BYTES. */
  inputs: Readonly<
    Record<string, { datatype?: Datatype; shape?: readonly number[]; data: ModuleOutput['data'] }>
  >;
  /** Default: all of them. */
  outputs?: readonly string[];
  parameters?: InferParameters;
  /** Of a model with sequences: which one, as a whole number from 1 or a text, and whether the request is its first or last. */
  sequence?: { id: bigint | number | string; start?: boolean; end?: boolean };
  /** The request for which the other model is asked: its trace has the call. Default: the trace of the batch has it. */
  request?: ModuleRequest;
  /** true: all answers of a decoupled model are waited for, at most 10,000 and 64 MiB. Default: the first is what there is. */
  decoupled?: boolean;
}

/** What another model has answered. */
export interface ModuleCallResponse {
  outputs: Readonly<Record<string, ModuleInput>>;
  parameters: InferParameters;
}

/** The first answer, empty where there is none, and with `decoupled` all of them. */
export interface ModuleCallResult {
  outputs: Readonly<Record<string, ModuleInput>>;
  responses: readonly ModuleCallResponse[];
}

export interface ModuleSetup {
  modelConfig: ModelConfig;
  modelName: string;
  modelVersion: string;
  /** The model's folder. */
  modelRepository: string;
  /** NAME_0, NAME_1, ...: each instance has a module of its own. */
  instanceName: string;
  /** Asks another model, in the middle of `execute`. Rejects with what that model says where it cannot answer. */
  infer(call: ModuleCall): Promise<ModuleCallResult>;
}

/** An answer, or why there is none. */
export type ModuleResult = ModuleResponse | Error | { error: string };

/** One result for each request of the batch, in their order. */
export type ModuleResults = readonly ModuleResult[];

/** One place for each request of the batch, in their order; undefined: no answer to that one now. */
export type ModuleStep = readonly (ModuleResult | undefined)[];

/**
 * A model in JavaScript or TypeScript: 1/model.mjs, model.js or model.ts of its folder exports these functions. It runs in a thread of
 * its own, or in a process.
 */
export interface ModelModule {
  /** Called once, before anything else. */
  initialize?(setup: ModuleSetup): void | Promise<void>;
  /**
   * Answers a batch of requests: one result for each, in their order; nothing, where it has given all answers through `send`. A decoupled
   * model may be an async generator: each list that it yields is sent at once, and its end ends all requests.
   * What it throws fails every request of the batch.
   */
  execute(
    requests: readonly ModuleRequest[],
  ): ModuleResults | undefined | Promise<ModuleResults | undefined> | AsyncIterable<ModuleStep>;
  /** Called once, after the last batch. */
  finalize?(): void | Promise<void>;
}
