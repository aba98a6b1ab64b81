import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js';

/** Longest latency, in microseconds: an hour. Longer ones count as this. */
const LONGEST_US = 3_600_000_000;

/**
 * HDR histogram of latencies, with three significant digits of microseconds. Its methods take and return milliseconds.
 */
export class LatencyHistogram {
  readonly #histogram: Histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: LONGEST_US,
    numberOfSignificantValueDigits: 3,
    bitBucketSize: 64,
  });
  #sumMs = 0;
  #squaresMs = 0;
  #minMs = Number.POSITIVE_INFINITY;
  #maxMs = Number.NEGATIVE_INFINITY;

  get count(): number {
    return this.#histogram.totalCount;
  }

  record(ms: number, count = 1): void {
    const us = Math.min(LONGEST_US, Math.max(0, Math.round(ms * 1000)));
    this.#histogram.recordValueWithCount(us, count);
    this.#sumMs += ms * count;
    this.#squaresMs += ms * ms * count;
    this.#minMs = Math.min(this.#minMs, ms);
    this.#maxMs = Math.max(this.#maxMs, ms);
  }

  /** Smallest latency that a share of `quantile` (0 .. 1) of all does not exceed; NaN where nothing was recorded. */
  quantile(quantile: number): number {
    if (this.count === 0) return Number.NaN;
    // A value stands for the upper end of its interval, which may be above the greatest one recorded.
    const ms = this.#histogram.getValueAtPercentile(100 * quantile) / 1000;
    return Math.min(this.#maxMs, Math.max(this.#minMs, ms));
  }

  get meanMs(): number {
    return this.#sumMs / this.count;
  }

  get deviationMs(): number {
    return Math.sqrt(Math.max(0, this.#squaresMs / this.count - this.meanMs ** 2));
  }

  get minMs(): number {
    return this.count === 0 ? Number.NaN : this.#minMs;
  }

  get maxMs(): number {
    return this.count === 0 ? Number.NaN : this.#maxMs;
  }

  /** Returns the counts as text for another process, and empties the histogram. */
  take(): string {
    const sums = [this.#sumMs, this.#squaresMs, this.#minMs, this.#maxMs];
    const text = `${sums.join(':')}:${encodeIntoCompressedBase64(this.#histogram)}`;
    this.#histogram.reset();
    this.#sumMs = 0;
    this.#squaresMs = 0;
    this.#minMs = Number.POSITIVE_INFINITY;
    this.#maxMs = Number.NEGATIVE_INFINITY;
    return text;
  }

  /** Adds the counts that `take` returned. */
  add(text: string): void {
    const parts = text.split(':');
    this.#histogram.add(decodeFromCompressedBase64(parts.pop()!) as Histogram);
    const [sum, squares, min, max] = parts.map(Number) as [number, number, number, number];
    this.#sumMs += sum;
    this.#squaresMs += squares;
    this.#minMs = Math.min(this.#minMs, min);
    this.#maxMs = Math.max(this.#maxMs, max);
  }
}
