/** Warnings that are passed on in each window, and its length in milliseconds. */
const MAX_TOLD = 10;
const WINDOW_MS = 10_000;

/**
 * Passes on the first warnings of each window, and counts the rest: their cause may repeat a thousand times a
 * second.
 */
export class PacedWarnings {
  readonly #onWarning: (message: string) => void;
  readonly #now: () => number;
  #windowEndMs = Number.NEGATIVE_INFINITY;
  #numTold = 0;
  #numUntold = 0;

  constructor(onWarning: (message: string) => void, now = () => performance.now()) {
    this.#onWarning = onWarning;
    this.#now = now;
  }

  tell(message: string): void {
    const nowMs = this.#now();
    if (nowMs >= this.#windowEndMs) {
      this.#windowEndMs = nowMs + WINDOW_MS;
      this.#numTold = 0;
    }
    if (this.#numTold >= MAX_TOLD) {
      this.#numUntold++;
      return;
    }
    this.#numTold++;
    const more = this.#numUntold === 0 ? '' : ` (${this.#numUntold} more before it were not told.)`;
    this.#numUntold = 0;
    this.#onWarning(`${message}${more}`);
  }
}
