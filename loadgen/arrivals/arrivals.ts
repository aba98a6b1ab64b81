import type { Random } from '../random.js';

/** Times at which requests come. Rates are samples (requests, or conversations) a second. */
export type ArrivalOptions =
  /** A closed loop: a number of requests at once, the next when one has ended. */
  | { kind: 'concurrency'; concurrency: number }
  /** Arrivals at equal intervals. */
  | { kind: 'constant'; rate: number }
  | { kind: 'poisson'; rate: number }
  /**
   * Gamma distributed intervals with this shape: 1 is Poisson, less is burstier, more is more even (vLLM's burstiness).
   */
  | { kind: 'gamma'; rate: number; burstiness: number }
  /** Bursts of `size` requests, as often as the rate needs. */
  | { kind: 'burst'; rate: number; size: number }
  /** Poisson arrivals whose rate changes evenly from `from` to `to`, and then stays. */
  | { kind: 'ramp'; from: number; to: number; seconds: number }
  /** All requests at the beginning. */
  | { kind: 'max' }
  /** Arrivals at the times of a trace, `speed` times as fast. */
  | { kind: 'trace'; file: string; speed: number };

export type TimedArrivals = Exclude<ArrivalOptions, { kind: 'concurrency' | 'trace' }>;

/** Seconds from the start at which requests come, without end. The first of even arrivals is at 0. */
export function* arrivalTimes(options: TimedArrivals, random: Random): Generator<number, never> {
  if (options.kind === 'ramp') return yield* rampTimes(options, random);
  let at = 0;
  for (let i = 0; ; i++) {
    switch (options.kind) {
      case 'max':
        yield 0;
        break;
      case 'constant':
        // A product instead of a sum avoids adding up rounding errors.
        yield i / options.rate;
        break;
      case 'burst':
        yield (Math.floor(i / options.size) * options.size) / options.rate;
        break;
      case 'poisson':
        at += random.exponential() / options.rate;
        yield at;
        break;
      case 'gamma':
        at += random.gamma(options.burstiness) / options.rate;
        yield at;
        break;
    }
  }
}

/**
 * Times of a Poisson process of changing rate: one of rate 1, its time stretched by the expected number of arrivals.
 */
function* rampTimes(
  { from, to, seconds }: { from: number; to: number; seconds: number },
  random: Random,
): Generator<number, never> {
  const slope = (to - from) / seconds;
  const expectedAtEnd = (seconds * (from + to)) / 2;
  for (let expected = 0; ; ) {
    expected += random.exponential();
    if (expected >= expectedAtEnd) yield seconds + (expected - expectedAtEnd) / to;
    // Solves from * t + slope * t^2 / 2 = expected, in a form that holds for a slope of 0 too.
    else yield (2 * expected) / (from + Math.sqrt(from * from + 2 * slope * expected));
  }
}

/** Intended samples a second; null where the arrivals have no rate. */
export function offeredRate(options: ArrivalOptions): number | null {
  return options.kind === 'constant' ||
    options.kind === 'poisson' ||
    options.kind === 'gamma' ||
    options.kind === 'burst'
    ? options.rate
    : null;
}
