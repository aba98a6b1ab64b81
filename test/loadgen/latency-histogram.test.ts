import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LatencyHistogram } from '../../loadgen/metrics/latency-histogram.js';
import { mean } from '../../tools/support/statistics.js';

/** The smallest value that a share of all is not above. */
function exactQuantile(values: readonly number[], quantile: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(quantile * sorted.length) - 1)]!;
}

const ms = fc.oneof(
  fc.double({ min: 0, max: 10, noNaN: true }),
  fc.double({ min: 0, max: 300_000, noNaN: true }),
);

describe('the histogram of latencies', () => {
  it('gives percentiles within 0.1 %, or a microsecond, of the exact ones', () => {
    fc.assert(
      fc.property(fc.array(ms, { minLength: 1, maxLength: 400 }), (values) => {
        const histogram = new LatencyHistogram();
        for (const value of values) histogram.record(value);
        for (const quantile of [0, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1]) {
          const exact = exactQuantile(values, quantile);
          expect(Math.abs(histogram.quantile(quantile) - exact)).toBeLessThanOrEqual(0.001 * exact + 0.0011);
        }
        expect(histogram.minMs).toBe(Math.min(...values));
        expect(histogram.maxMs).toBe(Math.max(...values));
        expect(histogram.meanMs).toBeCloseTo(mean(values), 6);
      }),
    );
  });

  it('is the same put together from the parts of several processes', () => {
    fc.assert(
      fc.property(fc.array(fc.array(ms, { minLength: 1 }), { minLength: 1, maxLength: 4 }), (parts) => {
        const [whole, sum] = [new LatencyHistogram(), new LatencyHistogram()];
        for (const part of parts) {
          const own = new LatencyHistogram();
          for (const value of part) {
            own.record(value);
            whole.record(value);
          }
          sum.add(own.take());
          expect(own.count).toBe(0);
        }
        expect(sum.count).toBe(whole.count);
        for (const quantile of [0, 0.5, 0.99, 1])
          expect(sum.quantile(quantile)).toBe(whole.quantile(quantile));
      }),
      { numRuns: 20 },
    );
  });

  it('counts many at once, and has no values of none', () => {
    const histogram = new LatencyHistogram();
    expect([histogram.quantile(0.5), histogram.minMs, histogram.maxMs]).toEqual([
      Number.NaN,
      Number.NaN,
      Number.NaN,
    ]);
    histogram.record(0, 99);
    histogram.record(5);
    expect([histogram.count, histogram.quantile(0.99), histogram.quantile(1)]).toEqual([100, 0, 5]);
  });
});
