import type { DirectAnswer, ModelRouting } from '../routing/model-routing.js';

/** Counts of what became of requests, by their models. */
export class RoutingCounts {
  readonly #models = new Map<string, ModelRouting>();

  of(model: string): ModelRouting {
    let counts = this.#models.get(model);
    if (counts === undefined) {
      const direct = { taken: 0, full: 0, nobody: 0, silent: 0, unsent: 0 };
      counts = { direct, streamed: 0, cached: 0, uncached: 0, cachedBlocks: 0 };
      this.#models.set(model, counts);
    }
    return counts;
  }

  note(model: string, answer: DirectAnswer, cachedBlocks: number): void {
    const counts = this.of(model);
    counts.direct[answer] += 1;
    if (answer !== 'taken') return;
    if (cachedBlocks > 0) counts.cached += 1;
    else counts.uncached += 1;
    counts.cachedBlocks += cachedBlocks;
  }

  noteStreamed(model: string): void {
    this.of(model).streamed += 1;
  }

  /** A model is no longer served. */
  forget(model: string): void {
    this.#models.delete(model);
  }
}
