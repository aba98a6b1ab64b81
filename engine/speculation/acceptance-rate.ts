/** Share of older observations of a sequence that still counts after another draft, and after a step without one. */
const KEPT_BY_DRAFT = 0.8;
const KEPT_BY_IDLE_STEP = 0.97;
/** Weight of the first guess, in tokens. */
const GUESS_WEIGHT = 2;

/**
 * Estimates how probable it is that a draft token is accepted, given that those before it were. Old drafts count less
 * and less; while nothing is drafted the estimate returns to the first guess, so that drafts that did not pay are tried
 * again.
 */
export class AcceptanceRate {
  readonly #guess: number;
  readonly #kept: number;
  #accepted = 0;
  #tested = 0;

  /** @param kept share of older observations that still counts after another draft */
  constructor(guess: number, kept = KEPT_BY_DRAFT) {
    this.#guess = guess;
    this.#kept = kept;
  }

  /** Share of drafted tokens that are accepted, from 0 to 1. */
  get rate(): number {
    return (this.#accepted + GUESS_WEIGHT * this.#guess) / (this.#tested + GUESS_WEIGHT);
  }

  /**
   * Notes that a draft of `drafted` tokens was verified and its first `accepted` ones were right; nothing is
   * known after the first wrong one.
   */
  note(drafted: number, accepted: number): void {
    this.#fade(this.#kept);
    this.#accepted += accepted;
    this.#tested += Math.min(drafted, accepted + 1);
  }

  noteIdleStep(): void {
    this.#fade(KEPT_BY_IDLE_STEP);
  }

  #fade(kept: number): void {
    this.#accepted *= kept;
    this.#tested *= kept;
  }
}
