import { ErrorReporter } from '../base/error-reporter.js';
import { tellGuarded } from '../base/guarded-calls.js';
import type { ManagerState } from '../callbacks/gpt-manager-options.js';

export interface LifeOptions {
  onStateChange?: ((state: ManagerState, failure: Error | null) => void) | undefined;
  /** Failures that belong to no request. Not given: they are warnings of the process. */
  onError?: ((error: Error) => void) | undefined;
}

/**
 * The life of an object that runs an engine in workers, as its users see it: its state, and the promises of
 * its begin and end.
 */
export class ManagerLife<Info> {
  /** Settles when the engine is loaded for the first time; rejects where it cannot be. */
  readonly ready: Promise<Info>;
  /** Resolves when no worker runs and none will. */
  readonly ended: Promise<void>;
  readonly #options: LifeOptions;
  readonly #errors: ErrorReporter;
  #state: ManagerState = 'starting';
  #failure: Error | null = null;
  #resolveReady!: (info: Info) => void;
  #rejectReady!: (error: Error) => void;
  #resolveEnded!: () => void;

  constructor(options: LifeOptions) {
    this.#options = options;
    this.#errors = new ErrorReporter(options.onError);
    this.ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve;
      this.#rejectReady = reject;
    });
    this.ready.catch(() => {}); // reported to callers that await it; awaiting is optional
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  get state(): ManagerState {
    return this.#state;
  }

  /** Why the state is 'failed' or 'restarting', else null. */
  get failure(): Error | null {
    return this.#failure;
  }

  setState(state: ManagerState, failure: Error | null): void {
    if (this.#state === state && this.#failure === failure) return;
    this.#state = state;
    this.#failure = failure;
    this.tell('onStateChange', () => this.#options.onStateChange?.(state, failure));
  }

  /** The engine is loaded; called once. */
  noteReady(info: Info): void {
    this.#resolveReady(info);
  }

  /** There is no worker and there will be none. @param beforeReady why `ready` is rejected where nothing failed */
  noteEnded(error: Error | null, beforeReady: string): void {
    this.setState(error === null ? 'stopped' : 'failed', error);
    this.#rejectReady(error ?? new Error(beforeReady));
    this.#resolveEnded();
  }

  report(error: Error): void {
    this.#errors.report(error);
  }

  /** Calls a callback that brings nothing: whatever becomes of it, the engine continues. */
  tell(callback: string, call: () => unknown): void {
    tellGuarded({ callback }, call, (error) => this.#errors.report(error));
  }
}
