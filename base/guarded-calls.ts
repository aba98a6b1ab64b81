import { messageOf } from './error-text.js';
import { SkeinError } from './skein-error.js';

/** Name of a callback, and the request that it was called for, where there is one. */
export interface CallbackName {
  callback: string;
  requestId?: bigint | null | undefined;
}

/**
 * An error for a callback of the host that threw, whose promise was rejected, or that returned an invalid value.
 * `cause` is what it threw; absent where the callback ran in the engine's worker.
 */
export class CallbackError extends SkeinError {
  override name = 'CallbackError';
  override readonly code = 'SKEIN_CALLBACK';
  /** Name of the callback among the options or among the module's exports. */
  readonly callback: string;
  /** Id of the request that the callback was called for; null: it was not called for one request. */
  readonly requestId: bigint | null;

  constructor(message: string, { callback, requestId }: CallbackName, options?: ErrorOptions) {
    super(message, options);
    this.callback = callback;
    this.requestId = requestId ?? null;
  }

  static of(name: CallbackName, reason: unknown): CallbackError {
    const { callback, requestId = null } = name;
    const whose = requestId === null ? '' : ` for the request ${requestId}`;
    const message = `The callback ${callback} failed${whose}: ${messageOf(reason)}`;
    return new CallbackError(message, name, { cause: reason });
  }
}

/** Receives the failure of a callback. Must not throw. */
export type OnFailure = (error: CallbackError) => void;

/** Calls a callback and returns its result; if it throws, calls `onFailure` and returns undefined. */
export function callGuarded<T>(name: CallbackName, call: () => T, onFailure: OnFailure): T | undefined {
  try {
    return call();
  } catch (thrown) {
    onFailure(CallbackError.of(name, thrown));
    return undefined;
  }
}

/**
 * Calls a callback whose result is not needed. Its promise is not awaited, but a rejection is passed to
 * `onFailure`.
 */
export function tellGuarded(name: CallbackName, call: () => unknown, onFailure: OnFailure): void {
  const pending = promiseOf(callGuarded(name, call, onFailure));
  pending?.catch((reason: unknown) => onFailure(CallbackError.of(name, reason)));
}

/** The promise that a callback returned, of any library; null where it returned something else. */
export function promiseOf<T>(result: T | PromiseLike<T>): Promise<T> | null {
  if ((typeof result !== 'object' && typeof result !== 'function') || result === null) return null;
  try {
    return typeof (result as PromiseLike<T>).then === 'function' ? Promise.resolve(result) : null;
  } catch (error) {
    return Promise.reject(error);
  }
}
