import { MemoryError } from '../base/address-space.js';
import { CallbackError } from '../base/guarded-calls.js';
import { codeOf, SkeinError, textOf } from '../base/skein-error.js';
import { ParameterError } from '../callbacks/sampling-params.js';
import { EngineError } from '../engine/building/engine.js';
import { ExecutorLostError } from '../engine/executors/executor.js';
import { ExecutorUnavailableError } from '../engine/executors/executor-kind.js';
import { AddonError } from '../engine/executors/native/load-addon.js';
import { GuideError } from '../engine/guided/guide-error.js';

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
  ['SKEIN_CALLBACK', CallbackError],
  ['SKEIN_ENGINE', EngineError],
  ['SKEIN_ENGINE_FAILED', EngineFailure],
  ['SKEIN_EXECUTOR_LOST', ExecutorLostError],
  ['SKEIN_EXECUTOR_UNAVAILABLE', ExecutorUnavailableError],
  ['SKEIN_GUIDE', GuideError],
  ['SKEIN_MEMORY', MemoryError],
  ['SKEIN_PARAMETER', ParameterError],
]);

/**
 * Restores the class of an error from a worker: fields cross threads and processes, classes do not. An error of an
 * unknown class becomes the cause of an EngineFailure.
 */
export function asSkeinError(error: Error): SkeinError {
  if (error instanceof SkeinError) return error;
  const known = CLASSES.get(codeOf(error) ?? '');
  if (known === undefined) return new EngineFailure(textOf(error), { cause: error });
  return Object.setPrototypeOf(error, known.prototype) as SkeinError;
}
