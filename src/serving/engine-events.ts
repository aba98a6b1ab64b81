import { onlyTold, warn } from '../../base/error-reporter.js';
import { CallbackError, tellGuarded } from '../../base/guarded-calls.js';

/** Most errors that are kept for the first listener. */
const MAX_EARLY_ERRORS = 16;

/**
 * Passes on an engine's events. An error of a listener goes to the listeners of errors. What fails while the engine is loaded, when
 * there can be none yet, is kept for the first one.
 */
export class EngineEvents<Step> {
  readonly #statsListeners = new Set<(step: Step) => void>();
  readonly #errorListeners = new Set<(error: Error) => void>();
  readonly #early: Error[] = [];

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
    if (this.#errorListeners.size === 0) {
      if (error instanceof CallbackError) warn(error.message);
      else if (this.#early.length < MAX_EARLY_ERRORS) this.#early.push(error);
    }
    for (const listener of this.#errorListeners) onlyTold('onError', listener)(error);
  }

  onStats(listener: (step: Step) => void): () => void {
    this.#statsListeners.add(listener);
    return () => this.#statsListeners.delete(listener);
  }

  onError(listener: (error: Error) => void): void {
    this.#errorListeners.add(listener);
    for (const error of this.#early.splice(0)) onlyTold('onError', listener)(error);
  }
}
