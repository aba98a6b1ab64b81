import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { kneeOf, nextLoad, type SweepPoint, saturation } from '../../loadgen/sweep.js';

/** A server that keeps up until its capacity. */
const server =
  (capacity: number) =>
  (load: number): SweepPoint => ({ load, throughput: Math.min(load, capacity) });

describe('a sweep', () => {
  it('has no knee while throughput grows with the load', () => {
    const points = [1, 2, 4, 8].map(server(100));
    expect(saturation(points)).toBeNull();
    expect(kneeOf(points)).toBeNull();
  });

  it('finds the knee at the capacity', () => {
    const points = [1, 2, 4, 8, 12, 16, 32].map(server(12));
    expect(points[kneeOf(points)!]!.load).toBe(12);
    expect(saturation(points)).toEqual({ last: 4, first: 5 });
  });

  it('finds it on a smooth curve, where more load costs more than it gives', () => {
    // Amdahl: 1/throughput = 1/load + 1/100.
    const points = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].map((load) => ({
      load,
      throughput: 1 / (1 / load + 1 / 100),
    }));
    const { load } = points[kneeOf(points)!]!;
    expect(load).toBeGreaterThanOrEqual(128);
    expect(load).toBeLessThanOrEqual(512);
  });

  it('doubles until it is saturated, then closes in on the capacity, and ends', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 1, max: 5000, noNaN: true }),
        fc.integer({ min: 0, max: 5 }),
        (capacity, refine) => {
          const points: SweepPoint[] = [];
          for (let load = nextLoad(points, 1, refine, false); load !== null; ) {
            points.push(server(capacity)(load));
            load = nextLoad(points, 1, refine, false);
            expect(points.length).toBeLessThan(40);
          }
          const sorted = points.toSorted((a, b) => a.load - b.load);
          const { first } = saturation(sorted)!;
          // Within the interval in which the capacity lies.
          expect(sorted[first]!.load).toBeGreaterThanOrEqual(capacity);
          expect(new Set(points.map(({ load }) => load)).size).toBe(points.length);
        },
      ),
    );
  });

  it('of concurrency tries whole numbers only', () => {
    const points = [1, 2, 4].map(server(2.2));
    expect(nextLoad(points, 1, 3, true)).toBe(3);
    expect(nextLoad([...points, server(2.2)(3)], 1, 3, true)).toBeNull();
  });

  it('stops at a server that answers nothing', () => {
    const points = [1, 2].map(server(0));
    expect(saturation(points)).toEqual({ last: 0, first: 1 });
  });
});
