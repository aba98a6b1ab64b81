import { onlyTold, warn } from '../../base/error-reporter.js';
import { CallbackError, tellGuarded } from '../../base/guarded-calls.js';

/** Passes on an engine's events. An error of a listener goes to the listeners of errors. */
export class EngineEvents<Step> {
  readonly #statsListeners = new Set<(step: Step) => void>();
  readonly #errorListeners = new Set<(error: Error) => void>();

  emitStats(step: Step): void {
    for (const listener of this.#statsListeners) {
      tellGuarded(
        { callback: 'onStats' },
        () => listener(step),
        (error) => this.emitError(error),
      );
    }
  }

  emitError(error: Error): void {
    // Requests in flight show that an engine died; a failed callback would go unnoticed.
    if (this.#errorListeners.size === 0 && error instanceof CallbackError) warn(error.message);
    for (const listener of this.#errorListeners) onlyTold('onError', listener)(error);
  }

  onStats(listener: (step: Step) => void): () => void {
    this.#statsListeners.add(listener);
    return () => this.#statsListeners.delete(listener);
  }

  onError(listener: (error: Error) => void): void {
    this.#errorListeners.add(listener);
  }
}
