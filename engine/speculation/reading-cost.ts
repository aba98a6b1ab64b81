/** Share of older steps that still counts when another is noted. */
const KEPT = 0.8;

/** Milliseconds that a model takes for each context token, from its latest steps with contexts. */
export class ReadingCost {
  #tokens = 0;
  #ms = 0;

  /** Notes the time of a step with `tokens` tokens. */
  note(tokens: number, ms: number): void {
    if (!(ms > 0) || tokens < 1) return;
    this.#tokens = KEPT * this.#tokens + tokens;
    this.#ms = KEPT * this.#ms + ms;
  }

  /** Milliseconds per token; undefined: nothing was measured. */
  get perToken(): number | undefined {
    return this.#tokens === 0 ? undefined : this.#ms / this.#tokens;
  }
}
