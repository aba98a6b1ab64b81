import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SERIES, SeriesWindow } from '../../../../../src/server/dashboard/page/charts/series.js';
import { formation } from './simulated-feed.js';

/** Milliseconds after the event before, and iterations since. */
const gaps = fc.array(fc.tuple(fc.integer({ min: 1, max: 12_000 }), fc.nat(40)), {
  minLength: 2,
  maxLength: 80,
});

/** The same, of events so far apart that a rate is that since the event before. */
const longGaps = fc.array(fc.tuple(fc.integer({ min: 1000, max: 12_000 }), fc.nat(40)), {
  minLength: 2,
  maxLength: 80,
});

describe('the series of the charts', () => {
  it('are the rates of what was counted, whatever events are missed', () => {
    fc.assert(
      fc.property(longGaps, fc.infiniteStream(fc.boolean()), (steps, kept) => {
        const series = new SeriesWindow(1e9);
        let ms = 0;
        let iteration = 0;
        let lastTaken = { ms: 0, iteration: 0 };
        let counted = 0;
        series.take(formation(0, 0));
        for (const [gapMs, iterations] of steps) {
          ms += gapMs;
          iteration += iterations;
          if (!kept.next().value) continue;
          series.take(formation(ms, iteration));
          const rate = series.latest('generatedPerSecond')!;
          expect(rate).toBeGreaterThanOrEqual(0);
          counted += (rate * (ms - lastTaken.ms)) / 1000;
          if (iteration > lastTaken.iteration) {
            expect(series.latest('batch')).toBeCloseTo(4, 6);
            expect(series.latest('iterationMs')).toBeCloseTo(10, 6);
          }
          lastTaken = { ms, iteration };
        }
        expect(counted).toBeCloseTo(20 * lastTaken.iteration, 3);
      }),
    );
  });

  it('ascend in time, are of one length, stay in the window, and take nothing twice or late', () => {
    fc.assert(
      fc.property(gaps, fc.infiniteStream(fc.nat(3)), (steps, lateness) => {
        const series = new SeriesWindow(60);
        let ms = 0;
        let iteration = 0;
        const events = steps.map(([gapMs, iterations]) => {
          ms += gapMs;
          iteration += iterations;
          return formation(ms, iteration);
        });
        for (const [index] of events.entries()) {
          const late = events[Math.max(0, index - lateness.next().value!)]!;
          series.take(late);
          expect(series.take(late)).toBe(false);
        }
        const { times, values } = series;
        for (const name of SERIES) expect(values[name]).toHaveLength(times.length);
        for (const [index, time] of times.entries()) {
          if (index > 0) expect(time).toBeGreaterThan(times[index - 1]!);
        }
        expect(times.at(-1)! - times[0]!).toBeLessThanOrEqual(60);
      }),
    );
  });

  it('have a hole where a new engine begins to count, and where nothing was heard', () => {
    const series = new SeriesWindow(600);
    series.take(formation(0, 100));
    series.take(formation(200, 110));
    expect(series.latest('generatedPerSecond')).toBe(1000);
    series.take(formation(400, 2));
    expect([series.latest('generatedPerSecond'), series.latest('inFlight')]).toEqual([null, 0]);
    series.take(formation(600, 4));
    expect(series.latest('generatedPerSecond')).toBe(200);
    series.take(formation(20_600, 4));
    expect(series.values.inFlight).toEqual([0, 0, 0, 0, null, 0]);
  });

  it('have no spike between two events that come close together, and step down where the engine rests', () => {
    const series = new SeriesWindow(60);
    const busy = { requests: [[1, '', 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]] as never };
    series.take(formation(0, 0, busy));
    for (let i = 1; i <= 10; i++) series.take(formation(200 * i, i, busy));
    expect(series.latest('generatedPerSecond')).toBe(100);
    // The last iteration ends two milliseconds after the event before.
    series.take(formation(2002, 11));
    expect(series.latest('generatedPerSecond')).toBeLessThan(125);
    series.take(formation(7002, 11));
    const { times, values } = series;
    expect(values.generatedPerSecond.slice(-2)).toEqual([0, 0]);
    expect(times.at(-2)! - times.at(-3)!).toBeLessThan(0.001);
    expect(Math.max(...values.generatedPerSecond.map((value) => value ?? 0))).toBeLessThan(125);
  });

  it('show rest when it is told of it, once, and the longest iteration over the time of the mean', () => {
    const series = new SeriesWindow(60);
    const busy = { requests: [[1, '', 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]] as never };
    series.take(formation(0, 0, busy));
    series.take(formation(200, 2, { ...busy, longestIterationMs: 90 }));
    series.take(formation(400, 20, { ...busy, longestIterationMs: 3 }));
    expect([series.latest('iterationMs'), series.latest('longestMs')]).toEqual([10, 90]);
    expect(series.rest()).toBe(false);
    series.take(formation(600, 21));
    expect(series.latest('generatedPerSecond')).toBeGreaterThan(0);
    expect([series.rest(), series.rest()]).toEqual([true, false]);
    const shown = (['generatedPerSecond', 'batch', 'iterationMs', 'longestMs'] as const).map((name) =>
      series.latest(name),
    );
    expect(shown).toEqual([0, 0, null, null]);
    const { length } = series.times;
    series.take(formation(5600, 21));
    expect(series.times).toHaveLength(length + 1);
  });

  it('counts states, what waits beyond the list, and whose the blocks are', () => {
    const series = new SeriesWindow(60);
    const row = (state: number) => [state, '', state, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1] as const;
    const requests = [[...row(1)], [...row(2)], [...row(2)], [...row(3)], [...row(0)]] as never;
    const blocks = { count: 20, tokensPerBlock: 8, runs: [4, 0, 2, -3, 5, -2, 9, -1] };
    series.take(formation(0, 1, { requests, queued: 7, blocks }));
    const latest = (name: (typeof SERIES)[number]) => series.latest(name);
    expect([latest('inFlight'), latest('waiting'), latest('kvUsed'), latest('kvCached')]).toEqual([
      4, 7, 30, 25,
    ]);
  });
});
