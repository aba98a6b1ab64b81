/** Milliseconds over which a rate is taken: long enough to be calm, short enough to be of now. */
const WINDOW_MS = 5000;

/** Batches a second of one model, from totals: missed events leave no hole. */
export class BatchRate {
  /** Oldest first; the first is the latest one that is older than the window, or the first of all. */
  #samples: { timeMs: number; batches: number }[] = [];

  /** Takes the total of an event. Returns the rate; null: it is not known yet. */
  take(timeMs: number, batches: number): number | null {
    const last = this.#samples.at(-1);
    // A model that was loaded again counts from the beginning; so does one under a clock that was set back.
    if (last !== undefined && (batches < last.batches || timeMs < last.timeMs)) this.#samples = [];
    if (last?.timeMs !== timeMs) this.#samples.push({ timeMs, batches });
    while (this.#samples.length > 2 && this.#samples[1]!.timeMs <= timeMs - WINDOW_MS) this.#samples.shift();
    const first = this.#samples[0]!;
    return timeMs > first.timeMs ? (1000 * (batches - first.batches)) / (timeMs - first.timeMs) : null;
  }
}
