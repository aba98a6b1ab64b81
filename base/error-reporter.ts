import { messageOf } from './error-text.js';
import { promiseOf, tellGuarded } from './guarded-calls.js';
import { asSentence } from './sentences.js';

/**
 * Hands failures that belong to no answer to the host's onError; where there is none they become warnings of the process.
 * So do those that onError leaves behind: what it throws, what its promise is rejected with, and what fails while it runs
 * because of what it does, which would otherwise call it from within itself without end.
 */
export class ErrorReporter {
  readonly #onError: ((error: Error) => unknown) | undefined;
  #isReporting = false;

  constructor(onError: ((error: Error) => unknown) | undefined) {
    this.#onError = onError;
  }

  /** Never throws. */
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

/** A warning of the process, which says it on stderr unless the program listens for warnings. */
export function warn(message: string): void {
  process.emitWarning(message, 'SkeinWarning');
}

/** A function that is told how something goes on and changes nothing of it: what it fails with is a warning. */
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
