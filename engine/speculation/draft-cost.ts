import { ReadingCost } from './reading-cost.js';

/** A time is believed sooner where it is shorter: what disturbs a measurement makes it longer. */
const SHORTER_WEIGHT = 0.4;
const LONGER_WEIGHT = 0.1;
/** What is left of a measured share after a step without rounds: what once looked slow gets another chance. */
const KEPT_BY_IDLE_STEP = 0.995;

/**
 * What the draft model takes, measured as the loop runs: rounds, which draw a token for each of some sequences, as a share
 * of what the model's own step of as many rows takes, and reading what it has not seen of a sequence, by the token.
 */
export class DraftCost {
  /** The guess, until something was measured. */
  #share: number;
  /** The first step reads the weights from the disk, and says nothing of those after it. */
  #isWarm = false;
  #isMeasured = false;
  readonly #reading = new ReadingCost();

  /** `share`: of the model's own step, until it has been measured. */
  constructor(share: number) {
    this.#share = share;
  }

  /** A round took `ms`; the model's own step of as many rows takes `stepMs`. */
  noteRound(ms: number, stepMs: number): void {
    if (!this.#warm(ms) || !(stepMs > 0)) return;
    const share = ms / stepMs;
    const weight = share < this.#share ? SHORTER_WEIGHT : LONGER_WEIGHT;
    this.#share = this.#isMeasured ? this.#share + weight * (share - this.#share) : share;
    this.#isMeasured = true;
  }

  /** A step that read so many tokens took `ms`. */
  noteReading(tokens: number, ms: number): void {
    if (this.#warm(ms)) this.#reading.note(tokens, ms);
  }

  noteIdleStep(): void {
    if (this.#isMeasured) this.#share *= KEPT_BY_IDLE_STEP;
  }

  /** Milliseconds of a round beside the model's own step of as many rows that takes `stepMs`. */
  ofRound(stepMs: number): number {
    return this.#share * stepMs;
  }

  /** Milliseconds of reading a token, where the model itself takes `ownMs` for one. */
  ofReading(ownMs: number): number {
    return this.#reading.perToken ?? this.#share * ownMs;
  }

  #warm(ms: number): boolean {
    const counts = this.#isWarm && ms > 0;
    this.#isWarm = true;
    return counts;
  }
}
