/** How much of what was seen of a sequence still counts after another draft, and after a step without one. */
const KEPT_BY_DRAFT = 0.8;
const KEPT_BY_IDLE_STEP = 0.97;
/** The first guess counts as much as this many tokens. */
const GUESS_WEIGHT = 2;

/**
 * Estimates how probable it is that a draft token is accepted, given that those before it were. Old drafts count less
 * and less; while nothing is drafted the estimate returns to the first guess, so that what did not pay is tried again.
 */
export class AcceptanceRate {
  readonly #guess: number;
  readonly #kept: number;
  #accepted = 0;
  #tested = 0;

  /** `kept`: how much of what was seen still counts after another draft. */
  constructor(guess: number, kept = KEPT_BY_DRAFT) {
    this.#guess = guess;
    this.#kept = kept;
  }

  /** Share of drafted tokens that are accepted, from 0 to 1. */
  get rate(): number {
    return (this.#accepted + GUESS_WEIGHT * this.#guess) / (this.#tested + GUESS_WEIGHT);
  }

  /** A draft of `drafted` tokens was verified: its first `accepted` ones were right, and nothing is known behind the first wrong one. */
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
