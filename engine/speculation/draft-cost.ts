import { ReadingCost } from './reading-cost.js';

/** Weights of a new time: a shorter one counts more, because disturbances make measurements longer. */
const SHORTER_WEIGHT = 0.4;
const LONGER_WEIGHT = 0.1;
/**
 * Share of a measured value that is kept after a step without rounds, so that rounds which once looked slow get another
 * chance.
 */
const KEPT_BY_IDLE_STEP = 0.995;

/**
 * Cost of the draft model, measured as the loop runs: of rounds, which draw a token for each of some sequences, as a share
 * of the time of the model's own step of as many rows; and of reading a sequence's unread tokens, per token.
 */
export class DraftCost {
  /** Cost of a round as a share; the guess until something was measured. */
  #share: number;
  /** False until the first step, whose time is not used because it reads the weights from the disk. */
  #isWarm = false;
  #isMeasured = false;
  readonly #reading = new ReadingCost();

  /** @param share guess for a round as a share of the model's own step, until it has been measured */
  constructor(share: number) {
    this.#share = share;
  }

  /** Notes the time of a round; the model's own step of as many rows takes `stepMs`. */
  noteRound(ms: number, stepMs: number): void {
    if (!this.#warm(ms) || !(stepMs > 0)) return;
    const share = ms / stepMs;
    const weight = share < this.#share ? SHORTER_WEIGHT : LONGER_WEIGHT;
    this.#share = this.#isMeasured ? this.#share + weight * (share - this.#share) : share;
    this.#isMeasured = true;
  }

  /** Notes the time of a step that read `tokens` tokens. */
  noteReading(tokens: number, ms: number): void {
    if (this.#warm(ms)) this.#reading.note(tokens, ms);
  }

  noteIdleStep(): void {
    if (this.#isMeasured) this.#share *= KEPT_BY_IDLE_STEP;
  }

  /** Milliseconds of a round, if the model's own step of as many rows takes `stepMs`. */
  ofRound(stepMs: number): number {
    return this.#share * stepMs;
  }

  /** Milliseconds of reading a token, if the model itself takes `ownMs` for one. */
  ofReading(ownMs: number): number {
    return this.#reading.perToken ?? this.#share * ownMs;
  }

  #warm(ms: number): boolean {
    const counts = this.#isWarm && ms > 0;
    this.#isWarm = true;
    return counts;
  }
}
