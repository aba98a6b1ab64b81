import { messageOf } from './error-text.js';
import { SkeinError } from './skein-error.js';

/** Which callback it is, and of which request where there is one. */
export interface CallbackName {
  callback: string;
  requestId?: bigint | null | undefined;
}

/**
 * A function of the host failed: it threw, the promise that it returned was rejected, or it returned what it must not.
 * `cause` is what it threw; absent where the callback ran in the engine's worker.
 */
export class CallbackError extends SkeinError {
  override name = 'CallbackError';
  override readonly code = 'SKEIN_CALLBACK';
  /** The callback's name among the options, or among what the module exports. */
  readonly callback: string;
  /** null: it was not called for one request. */
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

/** Takes what a callback failed with. Must not throw. */
export type OnFailure = (error: CallbackError) => void;

/** What the callback returns; undefined where it throws, which `onFailure` is told. */
export function callGuarded<T>(name: CallbackName, call: () => T, onFailure: OnFailure): T | undefined {
  try {
    return call();
  } catch (thrown) {
    onFailure(CallbackError.of(name, thrown));
    return undefined;
  }
}

/** The same for a callback whose result nobody needs: a promise of it is waited for by nobody, and may be rejected all the same. */
export function tellGuarded(name: CallbackName, call: () => unknown, onFailure: OnFailure): void {
  const pending = promiseOf(callGuarded(name, call, onFailure));
  pending?.catch((reason: unknown) => onFailure(CallbackError.of(name, reason)));
}

/** The promise that a callback returned, of whatever library; null where it returned something else. */
export function promiseOf<T>(result: T | PromiseLike<T>): Promise<T> | null {
  if ((typeof result !== 'object' && typeof result !== 'function') || result === null) return null;
  try {
    return typeof (result as PromiseLike<T>).then === 'function' ? Promise.resolve(result) : null;
  } catch (error) {
    return Promise.reject(error);
  }
}
