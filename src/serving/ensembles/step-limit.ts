/** Ensembles within each other. */
export const MAX_DEPTH = 8;

/**
 * Requests that a step of an ensemble may have at its model at once, of all requests of the ensemble; others wait in their order
 * (`max_inflight_requests` of Triton).
 */
export class StepLimit {
  readonly #most: number;
  #running = 0;
  /** Each begins one that waits. A Set, from which one leaves in no time. */
  readonly #waiting = new Set<() => void>();
  #isLetting = false;

  /** @param most 0: any number */
  constructor(most: number) {
    this.#most = most === 0 ? Number.POSITIVE_INFINITY : most;
  }

  /**
   * Calls `begin` now, or when it is its turn. It must not throw; what has begun gives its place back by `end`, which may be at once.
   * @returns takes back what has not begun
   */
  enter(begin: () => void): () => void {
    this.#waiting.add(begin);
    this.#let();
    return () => {
      this.#waiting.delete(begin);
    };
  }

  /** One that has begun is over. */
  end(): void {
    this.#running--;
    this.#let();
  }

  #let(): void {
    // Thousands that end as soon as they begin do not call each other.
    if (this.#isLetting) return;
    this.#isLetting = true;
    for (const begin of this.#waiting) {
      if (this.#running >= this.#most) break;
      this.#waiting.delete(begin);
      this.#running++;
      begin();
    }
    this.#isLetting = false;
  }
}
