/** Ratio of the bounds of two neighbouring buckets: a quantile is at most this much too high. */
const STEP = 1.05;
const LOG_STEP = Math.log(STEP);
/** Upper bound of the first bucket, and number of buckets: up to an hour. */
const FIRST_MS = 0.1;
const NUM_BUCKETS = Math.ceil(Math.log(3_600_000 / FIRST_MS) / LOG_STEP) + 1;
/** Weights grow instead of fading, and are all made smaller when they reach this. */
const MOST = 2 ** 60;

/**
 * Quantiles of times that count less the older they are: half after each half-life. In a fixed number of buckets, each 5 % wider than
 * the one before.
 */
export class FadingTimes {
  readonly #halfLifeMs: number;
  #weights: Float64Array | null = null;
  #total = 0;
  /** When a new time has the weight 1, before it is faded. */
  #originMs = 0;

  constructor(halfLifeMs: number) {
    this.#halfLifeMs = halfLifeMs;
  }

  /** @param count times that are equal */
  add(ms: number, nowMs: number, count = 1): void {
    this.#weights ??= new Float64Array(NUM_BUCKETS);
    if (this.#total === 0) this.#originMs = nowMs;
    let weight = 2 ** ((nowMs - this.#originMs) / this.#halfLifeMs);
    if (!(weight < MOST)) {
      this.#fade(weight);
      this.#originMs = nowMs;
      weight = 1;
    }
    this.#weights[bucketOf(ms)]! += weight * count;
    this.#total += weight * count;
  }

  #fade(by: number): void {
    const weights = this.#weights!;
    for (let i = 0; i < weights.length; i++) weights[i]! /= by;
    this.#total = weights.reduce((sum, one) => sum + one, 0);
  }

  /** Sum of the weights now: the number of times, if all had just been. */
  weight(nowMs: number): number {
    return this.#total * 2 ** ((this.#originMs - nowMs) / this.#halfLifeMs);
  }

  /**
   * The upper bound of the bucket with a quantile; 0: there are no times.
   * @param more times of now that are counted with them
   */
  quantile(share: number, nowMs: number, more: readonly number[] = []): number {
    const unit = 2 ** ((nowMs - this.#originMs) / this.#halfLifeMs);
    const weights = this.#weights === null ? new Float64Array(NUM_BUCKETS) : this.#weights.slice();
    // All that is here has long faded.
    if (!(unit < MOST)) weights.fill(0);
    const one = unit < MOST ? unit : 1;
    for (const ms of more) weights[bucketOf(ms)]! += one;
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    if (total === 0) return 0;
    let sum = 0;
    for (let i = 0; i < NUM_BUCKETS; i++) {
      sum += weights[i]!;
      if (sum >= share * total) return FIRST_MS * STEP ** i;
    }
    return FIRST_MS * STEP ** (NUM_BUCKETS - 1);
  }
}

function bucketOf(ms: number): number {
  if (!(ms > FIRST_MS)) return 0;
  return Math.min(NUM_BUCKETS - 1, Math.ceil(Math.log(ms / FIRST_MS) / LOG_STEP));
}
