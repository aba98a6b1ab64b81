import { QUANTILES_MS, type Quantiles } from '../../callbacks/formation.js';

/** Milliseconds of a generation of counts; quantiles are over the running generation and the one before. */
export const GENERATION_MS = QUANTILES_MS / 2;
/** Buckets per doubling: each is 4.4 % wider than the one before, so that its middle is at most 2.2 % off. */
const BUCKETS_PER_OCTAVE = 16;
const SHORTEST_MS = 0.05;
const NUM_BUCKETS = 24 * BUCKETS_PER_OCTAVE;

/** Durations in the latest 10 to 20 seconds, as quantiles. Fixed memory; a note is a logarithm and a count. */
export class LatencyWindow {
  #running = new Float64Array(NUM_BUCKETS);
  #before = new Float64Array(NUM_BUCKETS);
  #startMs = Number.NEGATIVE_INFINITY;

  note(ms: number, nowMs: number, count = 1): void {
    this.#turn(nowMs);
    this.#running[bucketOf(ms)]! += count;
  }

  /** Quantiles; null if nothing was noted. */
  quantiles(nowMs: number): Quantiles | null {
    this.#turn(nowMs);
    const counts = this.#running.map((count, bucket) => count + this.#before[bucket]!);
    const count = counts.reduce((sum, one) => sum + one, 0);
    if (count === 0) return null;
    return {
      count,
      p50: at(counts, 0.5 * count),
      p90: at(counts, 0.9 * count),
      p99: at(counts, 0.99 * count),
    };
  }

  /** Begins a new generation when it is time; after a longer silence both become empty. */
  #turn(nowMs: number): void {
    const age = nowMs - this.#startMs;
    if (age < GENERATION_MS) return;
    [this.#running, this.#before] = [this.#before, this.#running];
    this.#running.fill(0);
    if (age >= 2 * GENERATION_MS) this.#before.fill(0);
    this.#startMs = age < 2 * GENERATION_MS ? this.#startMs + GENERATION_MS : nowMs;
  }
}

function bucketOf(ms: number): number {
  const bucket = Math.floor(Math.log2(ms / SHORTEST_MS) * BUCKETS_PER_OCTAVE);
  return Math.min(Math.max(0, bucket), NUM_BUCKETS - 1) || 0;
}

/** The middle of the bucket that holds the value of this rank. */
function at(counts: Float64Array, rank: number): number {
  let sum = 0;
  for (let bucket = 0; bucket < counts.length; bucket++) {
    sum += counts[bucket]!;
    if (sum >= rank && counts[bucket]! > 0) return SHORTEST_MS * 2 ** ((bucket + 0.5) / BUCKETS_PER_OCTAVE);
  }
  return Number.NaN;
}
