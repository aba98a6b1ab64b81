import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ArrivalOptions, arrivalTimes, type TimedArrivals } from '../../loadgen/arrivals/arrivals.js';
import { schedule } from '../../loadgen/arrivals/schedule.js';
import { Dealer } from '../../loadgen/coordinator/dealer.js';
import { conversations } from '../../loadgen/data/create-data.js';
import { drawLength, type LengthOptions } from '../../loadgen/data/lengths.js';
import { randomText } from '../../loadgen/data/random-text.js';
import { PLAIN_SCALE } from '../../loadgen/data/words.js';
import { Random } from '../../loadgen/random.js';
import type { Dataset } from '../../loadgen/samples.js';
import { mean } from '../../tools/support/statistics.js';

const dataset: Dataset = {
  description: {},
  size: 7,
  sample: (index) => ({ turns: [{ prompt: `p${index}`, maxTokens: 1 }] }),
};
const all = { requests: Number.POSITIVE_INFINITY, durationMs: Number.POSITIVE_INFINITY };

/** The first `count` times. */
function times(arrivals: TimedArrivals, count: number, seed = 1): number[] {
  const found: number[] = [];
  for (const time of arrivalTimes(arrivals, new Random(seed))) {
    if (found.length === count) break;
    found.push(time);
  }
  return found;
}

const gaps = (at: readonly number[]) => at.slice(1).map((time, i) => time - at[i]!);
/** Squared deviation over squared mean: 1 for Poisson, 1/shape for gamma. */
const variability = (values: readonly number[]) => {
  const middle = mean(values);
  return mean(values.map((v) => (v - middle) ** 2)) / middle ** 2;
};

describe('1: the schedule', () => {
  it('gives (sample, offset from the start), the same for a seed and another for another', () => {
    const arrivals: ArrivalOptions = { kind: 'poisson', rate: 10 };
    const take = (seed: number) => [...schedule(arrivals, dataset, seed, { ...all, requests: 50 })];
    expect(take(3)).toEqual(take(3));
    expect(take(3).map(({ offsetMs }) => offsetMs)).not.toEqual(take(4).map(({ offsetMs }) => offsetMs));
    expect(take(3).map(({ sampleNumber }) => sampleNumber)).toEqual(
      Array.from({ length: 50 }, (_, i) => i % 7),
    );
    expect(take(3).map(({ request }) => request)).toEqual(Array.from({ length: 50 }, (_, i) => i));
  });

  it('is bounded by requests and by time, and numbers every turn of a conversation', () => {
    const arrivals: ArrivalOptions = { kind: 'constant', rate: 10 };
    expect([...schedule(arrivals, dataset, 0, { ...all, durationMs: 1000 })]).toHaveLength(10);
    const lengths = {
      inputTokens: { kind: 'fixed', tokens: 3 },
      outputTokens: { kind: 'fixed', tokens: 3 },
    } as const;
    const talks = conversations(
      { ...lengths, turns: 3, thinkSeconds: 0, systemTokens: 0, samples: 100 },
      PLAIN_SCALE,
      0,
    );
    const numbers = [...schedule(arrivals, talks, 0, { ...all, requests: 8 })].map(({ request }) => request);
    expect(numbers).toEqual([0, 3, 6]);
  });

  it('goes in the order of time, whatever the arrivals', () => {
    const anyArrivals: fc.Arbitrary<TimedArrivals> = fc.oneof(
      fc.record({
        kind: fc.constant('poisson' as const),
        rate: fc.double({ min: 0.1, max: 1e4, noNaN: true }),
      }),
      fc.record({
        kind: fc.constant('gamma' as const),
        rate: fc.double({ min: 0.1, max: 1e4, noNaN: true }),
        burstiness: fc.double({ min: 0.05, max: 50, noNaN: true }),
      }),
      fc.record({
        kind: fc.constant('burst' as const),
        rate: fc.integer({ min: 1, max: 1000 }),
        size: fc.integer({ min: 1, max: 20 }),
      }),
      fc.record({
        kind: fc.constant('ramp' as const),
        from: fc.double({ min: 0, max: 1e3, noNaN: true }),
        to: fc.double({ min: 0.1, max: 1e3, noNaN: true }),
        seconds: fc.double({ min: 0.1, max: 100, noNaN: true }),
      }),
    );
    fc.assert(
      fc.property(anyArrivals, fc.integer(), (arrivals, seed) => {
        const at = times(arrivals, 200, seed);
        expect(at[0]).toBeGreaterThanOrEqual(0);
        expect(gaps(at).every((gap) => gap >= 0 && Number.isFinite(gap))).toBe(true);
      }),
    );
  });

  it('constant, burst and max are exact', () => {
    expect(times({ kind: 'constant', rate: 4 }, 5)).toEqual([0, 0.25, 0.5, 0.75, 1]);
    expect(times({ kind: 'burst', rate: 6, size: 3 }, 7)).toEqual([0, 0, 0, 0.5, 0.5, 0.5, 1]);
    expect(times({ kind: 'max' }, 3)).toEqual([0, 0, 0]);
  });

  it('Poisson and gamma have the rate and the spread that they should', () => {
    const poisson = gaps(times({ kind: 'poisson', rate: 50 }, 20_000));
    expect(mean(poisson)).toBeCloseTo(1 / 50, 3);
    expect(variability(poisson)).toBeGreaterThan(0.9);
    expect(variability(poisson)).toBeLessThan(1.1);
    for (const burstiness of [0.25, 1, 4]) {
      const gamma = gaps(times({ kind: 'gamma', rate: 50, burstiness }, 20_000));
      expect(mean(gamma) * 50).toBeCloseTo(1, 1);
      expect(variability(gamma) * burstiness).toBeGreaterThan(0.85);
      expect(variability(gamma) * burstiness).toBeLessThan(1.15);
    }
  });

  it('a ramp has as many arrivals as the area under it', () => {
    const at = times({ kind: 'ramp', from: 0, to: 200, seconds: 100 }, 12_000);
    const until = (seconds: number) => at.filter((time) => time < seconds).length;
    // 100 * t^2 / 100, within four deviations.
    expect(Math.abs(until(50) - 2500)).toBeLessThan(200);
    expect(Math.abs(until(100) - 10_000)).toBeLessThan(400);
    expect(Math.abs(until(105) - 11_000)).toBeLessThan(420);
  });

  it("a trace's times are kept, or gone through faster, and end with it", () => {
    const replay = (speed: number, requests = Number.POSITIVE_INFINITY) =>
      [
        ...schedule({ kind: 'trace', file: '', speed }, dataset, 0, { ...all, requests }, [0, 0.5, 0.5, 3]),
      ].map(({ offsetMs, sampleNumber }) => [offsetMs, sampleNumber]);
    expect(replay(1)).toEqual([
      [0, 0],
      [500, 1],
      [500, 2],
      [3000, 3],
    ]);
    expect(replay(2, 3)).toEqual([
      [0, 0],
      [250, 1],
      [250, 2],
    ]);
  });

  it('a closed loop has no times: slots decide', () => {
    const places = schedule({ kind: 'concurrency', concurrency: 2 }, dataset, 0, { ...all, requests: 3 });
    expect([...places].map(({ offsetMs }) => offsetMs)).toEqual([Number.NaN, Number.NaN, Number.NaN]);
  });
});

describe('4: dealing', () => {
  it('goes round robin: counts of workers differ by at most 1, and every request goes to one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 0, max: 60 }), (workers, requests) => {
        const places = schedule({ kind: 'constant', rate: 10 }, dataset, 0, { ...all, requests });
        const dealer = new Dealer(places, workers, 1000, dataset.size);
        const dealt: number[] = [];
        for (let ms = 0; ms <= 7000; ms += 700) {
          dealer.dealUntil(ms);
          for (const frame of dealer.takeFrames()) {
            if (frame === null) continue;
            dealt.push(...frame.requests);
            // Times are absolute.
            expect(frame.atMs).toEqual(frame.requests.map((request) => 1000 + request * 100));
          }
          expect(Math.max(...dealer.samples) - Math.min(...dealer.samples)).toBeLessThanOrEqual(1);
        }
        expect(dealt.sort((a, b) => a - b)).toEqual(Array.from({ length: requests }, (_, i) => i));
        expect(dealer.isExhausted).toBe(true);
      }),
    );
  });

  it('sends a sample to a worker once where samples come again', () => {
    const places = schedule({ kind: 'max' }, dataset, 0, { ...all, requests: 28 });
    const dealer = new Dealer(places, 1, 0, dataset.size);
    dealer.dealUntil(Number.POSITIVE_INFINITY);
    const [frame] = dealer.takeFrames();
    expect(frame!.samples.filter((sample) => sample !== null)).toHaveLength(7);
    expect(frame!.keepSamples).toBe(true);
  });
});

describe('lengths', () => {
  const draw = (options: LengthOptions) => {
    const random = new Random(5);
    return Array.from({ length: 20_000 }, () => drawLength(options, random));
  };

  it('fixed are all the same, uniform ones reach both ends and are as likely', () => {
    expect(new Set(draw({ kind: 'fixed', tokens: 9 }))).toEqual(new Set([9]));
    const uniform = draw({ kind: 'uniform', min: 3, max: 7 });
    for (let tokens = 3; tokens <= 7; tokens++) {
      const share = uniform.filter((drawn) => drawn === tokens).length / uniform.length;
      expect(Math.abs(share - 0.2)).toBeLessThan(0.015);
    }
    expect([Math.min(...uniform), Math.max(...uniform)]).toEqual([3, 7]);
  });

  it('lognormal ones have their median and spread, within 1 and the most', () => {
    const lengths = draw({ kind: 'lognormal', median: 100, sigma: 0.5, max: 100_000 });
    const logs = lengths.map(Math.log).sort((a, b) => a - b);
    expect(Math.exp(logs[logs.length >> 1]!)).toBeCloseTo(100, -1);
    const deviation = Math.sqrt(mean(logs.map((log) => (log - mean(logs)) ** 2)));
    expect(deviation).toBeCloseTo(0.5, 1);
    const cut = draw({ kind: 'lognormal', median: 2, sigma: 3, max: 5 });
    expect([Math.min(...cut), Math.max(...cut)]).toEqual([1, 5]);
  });
});

describe('data', () => {
  it('random text: number i depends on the seed and i alone, and has the words that were asked for', () => {
    const options = {
      inputTokens: { kind: 'uniform', min: 5, max: 50 },
      outputTokens: { kind: 'lognormal', median: 20, sigma: 1, max: 100 },
      samples: Number.POSITIVE_INFINITY,
    } as const;
    const scale = { fixed: 3, perWord: 1 };
    const data = randomText(options, scale, 5);
    expect(data.sample(17)).toEqual(randomText(options, scale, 5).sample(17));
    expect(data.sample(17)).not.toEqual(randomText(options, scale, 6).sample(17));
    for (let i = 0; i < 200; i++) {
      const [turn] = data.sample(i).turns;
      expect(turn!.promptTokens).toBeGreaterThanOrEqual(5);
      expect(turn!.promptTokens).toBeLessThanOrEqual(50);
      expect(turn!.prompt.split(' ')).toHaveLength(turn!.promptTokens! - 3);
      expect(turn!.maxTokens).toBeGreaterThanOrEqual(1);
      expect(turn!.maxTokens).toBeLessThanOrEqual(100);
    }
    expect(new Set(Array.from({ length: 200 }, (_, i) => data.sample(i).turns[0]!.prompt)).size).toBe(200);
  });

  it('shared prefixes begin alike and go on differently', () => {
    const tokens = { kind: 'fixed', tokens: 10 } as const;
    const options = {
      inputTokens: tokens,
      outputTokens: tokens,
      prefix: { tokens: 30, count: 3 },
      samples: 1000,
    };
    const data = randomText(options, PLAIN_SCALE, 1);
    const prompts = Array.from({ length: 100 }, (_, i) => data.sample(i).turns[0]!.prompt.split(' '));
    expect(new Set(prompts.map((words) => words.slice(0, 30).join(' '))).size).toBe(3);
    expect(new Set(prompts.map((words) => words.join(' '))).size).toBe(100);
    expect(data.sample(0).turns[0]!.promptTokens).toBe(40);
  });
});
