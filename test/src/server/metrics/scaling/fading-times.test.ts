import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FadingTimes } from '../../../../../src/server/metrics/scaling/fading-times.js';

const HALF_LIFE_MS = 60_000;
const time = fc.record({
  ms: fc.double({ min: 0.2, max: 1_000_000, noNaN: true }),
  count: fc.integer({ min: 1, max: 5 }),
  /** Milliseconds since the one before. */
  afterMs: fc.integer({ min: 0, max: 200_000 }),
});
const shares = fc.double({ min: 0.05, max: 0.95, noNaN: true });

/** The smallest of the times that this share of the weights does not exceed, counted one by one. */
function counted(times: { ms: number; weight: number }[], share: number): number {
  const sorted = [...times].sort((a, b) => a.ms - b.ms);
  const total = sorted.reduce((sum, { weight }) => sum + weight, 0);
  let sum = 0;
  for (const { ms, weight } of sorted) {
    sum += weight;
    if (sum >= share * total * (1 - 1e-9)) return ms;
  }
  return Number.NaN;
}

it('quantiles are those of weighted times, to 5 % above', () => {
  fc.assert(
    fc.property(fc.array(time, { minLength: 1, maxLength: 40 }), shares, (times, share) => {
      const fading = new FadingTimes(HALF_LIFE_MS);
      let nowMs = 1_000_000;
      const told = times.map(({ ms, count, afterMs }) => {
        nowMs += afterMs;
        fading.add(ms, nowMs, count);
        return { ms, count, atMs: nowMs };
      });
      const weighted = told.map(({ ms, count, atMs }) => ({
        ms,
        weight: count * 2 ** ((atMs - nowMs) / HALF_LIFE_MS),
      }));
      const found = fading.quantile(share, nowMs);
      // Sums of other orders may decide otherwise where a share ends at a time exactly.
      const low = counted(weighted, share - 1e-6);
      const high = counted(weighted, share + 1e-6);
      expect(found).toBeGreaterThanOrEqual(low * (1 - 1e-9));
      expect(found).toBeLessThanOrEqual(high * 1.05 * (1 + 1e-9));
      const total = weighted.reduce((sum, { weight }) => sum + weight, 0);
      expect(fading.weight(nowMs) / total).toBeCloseTo(1, 6);
    }),
  );
});

it('times that were long ago count for nothing, whatever comes in between', () => {
  const fading = new FadingTimes(HALF_LIFE_MS);
  for (let i = 0; i < 1000; i++) fading.add(5_000, 0);
  // A thousand hours: far beyond what a weight can be.
  const laterMs = 3_600_000_000;
  expect(fading.weight(laterMs)).toBe(0);
  expect(fading.quantile(0.9, laterMs, [10])).toBeLessThan(11);
  fading.add(10, laterMs);
  expect(fading.weight(laterMs)).toBeCloseTo(1, 6);
  expect(fading.quantile(0.9, laterMs)).toBeLessThan(11);
  expect(new FadingTimes(HALF_LIFE_MS).quantile(0.9, 0)).toBe(0);
});
