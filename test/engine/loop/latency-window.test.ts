import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GENERATION_MS, LatencyWindow } from '../../../engine/loop/latency-window.js';

const latency = fc.double({ min: 0.1, max: 100_000, noNaN: true });

describe('a window of latencies', () => {
  it('its quantiles are 2.3 % exact', () => {
    fc.assert(
      fc.property(fc.array(latency, { minLength: 1, maxLength: 300 }), (values) => {
        const window = new LatencyWindow();
        for (const value of values) window.note(value, 0);
        const sorted = values.toSorted((a, b) => a - b);
        const found = window.quantiles(1)!;
        expect(found.count).toBe(values.length);
        for (const [share, quantile] of [
          [0.5, found.p50],
          [0.9, found.p90],
          [0.99, found.p99],
        ] as const) {
          const exact = sorted[Math.max(0, Math.ceil(share * values.length - 1e-9) - 1)]!;
          expect(Math.abs(quantile / exact - 1)).toBeLessThan(0.023);
        }
      }),
    );
  });

  it('forgets what is older than two generations, and keeps what is younger than one', () => {
    const gap = fc.integer({ min: 0, max: 3 * GENERATION_MS });
    fc.assert(
      fc.property(fc.array(fc.tuple(gap, fc.nat(20)), { maxLength: 30 }), gap, (notes, last) => {
        const window = new LatencyWindow();
        let nowMs = 0;
        const times: number[] = [];
        for (const [waitMs, count] of notes) {
          nowMs += waitMs;
          if (count > 0) window.note(5, nowMs, count);
          for (let i = 0; i < count; i++) times.push(nowMs);
        }
        nowMs += last;
        const younger = (ms: number) => times.filter((time) => nowMs - time < ms).length;
        const count = window.quantiles(nowMs)?.count ?? 0;
        expect(count).toBeGreaterThanOrEqual(younger(GENERATION_MS));
        expect(count).toBeLessThanOrEqual(younger(2 * GENERATION_MS));
      }),
    );
  });

  it('what is too short or too long counts with the shortest or the longest', () => {
    const window = new LatencyWindow();
    window.note(0, 0);
    expect(window.quantiles(0)).toMatchObject({ count: 1, p99: expect.closeTo(0.05, 2) });
    window.note(1e12, 0);
    expect(window.quantiles(0)!.p99).toBeGreaterThan(500_000);
    expect(new LatencyWindow().quantiles(0)).toBeNull();
  });
});
