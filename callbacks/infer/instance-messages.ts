import type { ErrorRecord } from '../../base/error-record.js';
import type { Datatype } from './datatypes.js';
import type { InferParameters, InferSequence, InferTensor } from './infer-types.js';

/** A tensor whose elements lie in a message's bytes. */
export interface PackedTensor {
  name: string;
  datatype: Datatype;
  shape: readonly number[];
  offset: number;
  length: number;
}

/** The sequence of a request, and its place in it. */
export interface PackedSequence extends InferSequence {
  /** Of all sequences of this version of the model in this process: what its state is kept by. */
  number: number;
  /** Row of the batch. */
  slot: number;
}

export interface PackedRequest {
  id: string;
  inputs: readonly PackedTensor[];
  /** null: all of them. */
  outputs: readonly string[] | null;
  parameters: InferParameters;
  batchSize: number;
  /** null: the model has no sequences. */
  sequence: PackedSequence | null;
  /** W3C Trace Context of the request, for what its model asks of others; absent: it is not traced. */
  traceparent?: string;
}

/** Nanoseconds of the parts of a batch's execution. */
export interface BatchTimes {
  inputNs: number;
  inferNs: number;
  outputNs: number;
}

/** Requests that are run together. */
export interface BatchCommand {
  type: 'batch';
  /** Number of the batch, of all models in this process; those of an instance grow. */
  batch: number;
  /** Elements of all inputs. */
  bytes: Uint8Array;
  /** The worker sends the memory of `bytes` back with `done` or `dropped`: it is lent to a thread. */
  isLent: boolean;
  /** Memory for the answers, which go back in it where they fit; null: none. */
  answerMemory: ArrayBuffer | null;
  /** Of the batch in the instance's BatchClaims; null: the batch cannot be recalled. */
  slot: number | null;
  requests: readonly PackedRequest[];
  /** Rows of a batch of sequences, of which those that no request has are empty; null: the model has no sequences. */
  rows: number | null;
}

/** What an instance's worker is sent. */
export type InstanceCommand =
  | BatchCommand
  /** The answer to a `call`. */
  | { type: 'called'; call: number; responses: readonly ModelCallResponse[] | null; error: string | null }
  /** The answers to a request of a batch are no longer wanted. */
  | { type: 'cancelled'; batch: number; request: number }
  /** A message `answers` was handled: another one may come. */
  | { type: 'taken' }
  /** These sequences are over without their END: their states are not needed any more. */
  | { type: 'ended'; sequences: readonly number[] }
  /** No batch follows. */
  | { type: 'shutdown' };

/** Which request of the batch, and an answer to it. */
export interface PackedResponse {
  request: number;
  outputs: readonly PackedTensor[];
  parameters: InferParameters | null;
}

/** Answers to requests of the batch that runs. */
export interface PackedAnswers {
  /** Elements of all outputs. */
  bytes: Uint8Array;
  responses: readonly PackedResponse[];
  /** Requests to which nothing more will come. */
  ended: readonly number[];
  /** Requests that failed, each with the reason. */
  failed: readonly (readonly [request: number, reason: string])[];
}

/**
 * What an instance's worker sends besides what every worker reports about its life. Batches are run in order.
 */
export type InstanceMessage =
  /** In the middle of a batch, of a model that may give several answers. The host says `taken` when it has handled it. */
  | { type: 'answers'; answers: PackedAnswers }
  /** The batch is done: each of its requests has ended, or failed, with this or before. */
  | {
      type: 'done';
      answers: PackedAnswers;
      /** Requests of an iterative sequence that are to be run again: neither ended nor failed. */
      again: readonly number[];
      times: BatchTimes;
      memory: ArrayBuffer | null;
    }
  /** The batch of this slot was recalled before it began, and is forgotten here. */
  | { type: 'dropped'; slot: number; memory: ArrayBuffer | null; answerMemory: ArrayBuffer | null }
  /** For the log. */
  | { type: 'error'; error: ErrorRecord }
  /** The code of the batch that runs asks another model. */
  | { type: 'call'; call: number; asked: ModelCall };

/** What an instance says of itself when it is loaded. */
export interface InstanceInfo {
  instanceName: string;
  loadMs: number;
}

/** A request of a model's code to another model. */
export interface ModelCall {
  model: string;
  /** '': the latest. */
  version: string;
  inputs: readonly InferTensor[];
  /** null: all of them. */
  outputs: readonly string[] | null;
  parameters: InferParameters;
  sequence: InferSequence | null;
  /** Every answer is wanted; else the first. */
  decoupled: boolean;
  /** Number of the request in the batch for which it is made, for traces; absent: it names none. */
  request?: number;
}

export interface ModelCallResponse {
  outputs: readonly InferTensor[];
  parameters: InferParameters | null;
}
