/** A time is believed sooner where it is shorter: what disturbs a measurement makes it longer. */
const SHORTER_WEIGHT = 0.4;
const LONGER_WEIGHT = 0.1;
/** What is left of a measured time after a step without rounds: what once looked slow gets another chance. */
const KEPT_BY_IDLE_STEP = 0.995;

/** What a round of the draft model takes, measured as the loop runs. */
export class RoundCost {
  readonly #share: number;
  /** The first round reads the weights from the disk, and says nothing of those after it. */
  #isWarm = false;
  #ms = 0;

  /** `share`: of the model's own step, until it has been measured. */
  constructor(share: number) {
    this.#share = share;
  }

  note(ms: number): void {
    if (!this.#isWarm || !(ms > 0)) {
      this.#isWarm = true;
      return;
    }
    const weight = ms < this.#ms ? SHORTER_WEIGHT : LONGER_WEIGHT;
    this.#ms = this.#ms === 0 ? ms : this.#ms + weight * (ms - this.#ms);
  }

  noteIdleStep(): void {
    this.#ms *= KEPT_BY_IDLE_STEP;
  }

  /** Milliseconds of a round beside steps of one row that take `stepMs`. */
  of(stepMs: number): number {
    return this.#ms === 0 ? this.#share * stepMs : this.#ms;
  }
}
