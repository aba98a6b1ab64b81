import { MemoryError } from '../base/address-space.js';
import { CallbackError } from '../base/guarded-calls.js';
import { codeOf, SkeinError, textOf } from '../base/skein-error.js';
import { InferError } from '../callbacks/infer/infer-error.js';
import { RequestIdError } from '../callbacks/request-id-error.js';
import { ParameterError } from '../callbacks/sampling-params.js';
import { HostClosedError, QueueFullError, RequestError } from '../callbacks/token-request.js';
import { BackendError } from '../engine/backends/backend.js';
import { EngineError } from '../engine/building/engine.js';
import { ExecutorLostError } from '../engine/executors/executor.js';
import { ExecutorUnavailableError } from '../engine/executors/executor-kind.js';
import { AddonError } from '../engine/executors/native/load-addon.js';
import { GuideError } from '../engine/guided/guide-error.js';
import { BatcherLimitError } from '../scheduler/tensors/batcher-presets.js';

/** An error for an engine whose thread or process ended, or that threw something without a class of this package. */
export class EngineFailure extends SkeinError {
  override name = 'EngineFailure';
  override readonly code = 'SKEIN_ENGINE_FAILED';
}

/** Error classes that a worker may throw, by code. */
const CLASSES: ReadonlyMap<string, { readonly prototype: SkeinError }> = new Map<
  string,
  { readonly prototype: SkeinError }
>([
  ['SKEIN_ADDON', AddonError],
  ['SKEIN_BACKEND', BackendError],
  ['SKEIN_BATCHER_LIMIT', BatcherLimitError],
  ['SKEIN_CALLBACK', CallbackError],
  ['SKEIN_ENGINE', EngineError],
  ['SKEIN_ENGINE_FAILED', EngineFailure],
  ['SKEIN_EXECUTOR_LOST', ExecutorLostError],
  ['SKEIN_EXECUTOR_UNAVAILABLE', ExecutorUnavailableError],
  ['SKEIN_GUIDE', GuideError],
  ['SKEIN_HOST_CLOSED', HostClosedError],
  ['SKEIN_INFER', InferError],
  ['SKEIN_MEMORY', MemoryError],
  ['SKEIN_PARAMETER', ParameterError],
  ['SKEIN_QUEUE_FULL', QueueFullError],
  ['SKEIN_REQUEST', RequestError],
  ['SKEIN_REQUEST_ID', RequestIdError],
]);

/** Classes of JavaScript that a worker's code may throw, by name. */
const BUILT_IN: ReadonlyMap<string, { readonly prototype: Error }> = new Map(
  [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((one) => [one.name, one]),
);

/**
 * Restores the class of an error from a worker: fields cross threads and processes, classes do not. One of this package is found by its
 * code, one of JavaScript by its name; of any other, an Error with its name is left.
 */
export function withOwnClass(error: Error): Error {
  const code = codeOf(error);
  const known = code === null ? BUILT_IN.get(error.name) : CLASSES.get(code);
  return known === undefined || error instanceof SkeinError
    ? error
    : Object.setPrototypeOf(error, known.prototype);
}

/** The same; an error of an unknown class becomes the cause of an EngineFailure. */
export function asSkeinError(error: Error): SkeinError {
  const restored = withOwnClass(error);
  return restored instanceof SkeinError ? restored : new EngineFailure(textOf(error), { cause: error });
}
