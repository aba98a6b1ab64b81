import { messageOf } from './error-text.js';
import { promiseOf, tellGuarded } from './guarded-calls.js';
import { asSentence } from './sentences.js';

/**
 * Hands failures that belong to no answer to the host's onError; without one they become process warnings. A failure of
 * onError itself becomes a warning too: what it throws, what its promise is rejected with, and failures that it causes
 * while it runs, which would otherwise call it from within itself without end.
 */
export class ErrorReporter {
  readonly #onError: ((error: Error) => unknown) | undefined;
  #isReporting = false;

  constructor(onError: ((error: Error) => unknown) | undefined) {
    this.#onError = onError;
  }

  /** Reports a failure. Never throws. */
  report(error: Error): void {
    const onError = this.#onError;
    if (onError === undefined || this.#isReporting) {
      warn(error.message);
      return;
    }
    const fail = (reason: unknown) =>
      warn(`The callback onError failed: ${asSentence(messageOf(reason))} It was told: ${error.message}`);
    this.#isReporting = true;
    try {
      promiseOf(onError(error))?.catch(fail);
    } catch (thrown) {
      fail(thrown);
    } finally {
      this.#isReporting = false;
    }
  }
}

/** Emits a process warning, which is written to stderr unless the program listens for warnings. */
export function warn(message: string): void {
  process.emitWarning(message, 'SkeinWarning');
}

/** Wraps a listener that only observes: where it fails, a warning is emitted and the work continues. */
export function onlyTold<Told extends unknown[]>(
  callback: string,
  listener: (...told: Told) => unknown,
): (...told: Told) => void {
  return (...told) =>
    tellGuarded(
      { callback },
      () => listener(...told),
      (error) => warn(error.message),
    );
}
