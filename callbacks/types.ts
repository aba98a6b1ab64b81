import type { KvCacheEvent } from '../kvcache/cache-events.js';
import type { RequestFailure } from './request-failure.js';

/** Data of a tensor that crosses the callback border. bool is Uint8Array, u64 is BigUint64Array. */
export type TensorData = Int32Array | Float32Array | BigUint64Array | Uint8Array;

/** A tensor: its dimensions, and its elements in row-major order. */
export interface Tensor {
  shape: number[];
  data: TensorData;
}

/** A tensor with a name, as responses carry it. */
export interface NamedTensor extends Tensor {
  name: string;
}

/**
 * A request as the client gives it: a 64-bit id of the client's choosing, which no request in progress has, and named input
 * tensors.
 */
export interface InferenceRequest {
  requestId: bigint;
  inputs: Record<string, Tensor>;
  /** Priority from 0 to 1, higher first; default 0.5. */
  priority?: number;
  /**
   * When the request arrived, in milliseconds since the epoch (performance.timeOrigin + performance.now()): the times
   * in its final response count from here. Default: when the loop takes it.
   */
  arrivalTimeMs?: number;
  /** A response for each new piece; false: one with the whole answer. The same as the tensor `streaming`; default false. */
  isStreaming?: boolean;
}

/** Called at the start of each iteration for new requests. `max`: how many can be taken (negative = unbounded). */
export type GetInferenceRequestsCallback = (max: number) => InferenceRequest[] | Promise<InferenceRequest[]>;

/**
 * Called at the end of an iteration for each response. `final` is true for the last response of a request, whose
 * state is freed before this call. A non-empty `error` implies `final`, and comes with a
 * `failure` that says the same as data; see unpackResponses for the tensors. Not called for a request that is refused for
 * its id, since that may belong to another request: onError gets a RequestIdError.
 */
export type SendResponseCallback = (
  requestId: bigint,
  outputs: NamedTensor[],
  final: boolean,
  error: string,
  failure?: RequestFailure,
) => void | Promise<void>;

/** Called at the end of each iteration for the ids of requests to be stopped. */
export type PollStopSignalsCallback = () => Set<bigint> | Promise<Set<bigint>>;

/** Called at the end of each iteration in which something was active, with the statistics as JSON. */
export type ReturnBatchManagerStatsCallback = (json: string) => void | Promise<void>;

/**
 * Called after each iteration that stored, removed or changed cached blocks, with events that describe them.
 */
export type OnKvCacheEventsCallback = (events: KvCacheEvent[]) => void;

/**
 * The callbacks that a module given by URL exports (getInferenceRequests and sendResponse are required). They
 * run inside the worker, between iterations. A promise that a callback returns goes on there too, and holds
 * up no iteration; its result counts from the next iteration on. They end with the worker: after a failure of
 * it the module is loaded again by the next one, and its sendResponse is first called with the end of every
 * request that the module had brought in its earlier life and whose end it had not received. Where no other
 * worker comes (GptManager.failure) there is no module left to notify.
 */
export interface CallbackModule {
  getInferenceRequests: GetInferenceRequestsCallback;
  sendResponse: SendResponseCallback;
  pollStopSignals?: PollStopSignalsCallback;
  returnBatchManagerStats?: ReturnBatchManagerStatsCallback;
  /**
   * Called with what happened to cached blocks in an iteration: see KvCacheEvent. Needs kvCacheConfig.enableBlockReuse.
   */
  onKvCacheEvents?: OnKvCacheEventsCallback;
}
