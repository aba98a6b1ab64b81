import type { Random } from '../random.js';

/** Length of a text, in tokens. */
export type LengthOptions =
  | { kind: 'fixed'; tokens: number }
  /** Uniformly distributed from min to max. */
  | { kind: 'uniform'; min: number; max: number }
  /** Lognormally distributed, with the deviation `sigma` of the logarithm; cut to 1 .. max. */
  | { kind: 'lognormal'; median: number; sigma: number; max: number };

/** Limit of a lognormal length without a maximum, in medians. */
const LOGNORMAL_BOUND = 16;

export function drawLength(options: LengthOptions, random: Random): number {
  if (options.kind === 'fixed') return options.tokens;
  if (options.kind === 'uniform') return options.min + random.below(options.max - options.min + 1);
  const length = Math.round(options.median * Math.exp(options.sigma * random.normal()));
  return Math.min(options.max, Math.max(1, length));
}

/**
 * Parses `128`, `64-256` (uniform) or `lognormal:MEDIAN:SIGMA[:MAX]`.
 * @throws Error that says what is expected.
 */
export function parseLength(text: string): LengthOptions {
  const expected = `a number of tokens is 128, 64-256 (uniform) or lognormal:MEDIAN:SIGMA[:MAX], not "${text}"`;
  const whole = /^\d{1,7}$/;
  if (whole.test(text) && Number(text) > 0) return { kind: 'fixed', tokens: Number(text) };
  const range = /^(\d{1,7})-(\d{1,7})$/.exec(text);
  if (range !== null) {
    const [min, max] = [Number(range[1]), Number(range[2])];
    if (min >= 1 && min <= max) return { kind: 'uniform', min, max };
    throw new Error(`${expected}: from 1 up, the lower first`);
  }
  const [kind, median, sigma, max, ...rest] = text.split(':');
  if (kind === 'lognormal' && rest.length === 0 && whole.test(median ?? '') && Number(median) > 0) {
    const most = max === undefined ? LOGNORMAL_BOUND * Number(median) : Number(max);
    if (Number(sigma) > 0 && Number(sigma) <= 4 && Number.isInteger(most) && most >= Number(median)) {
      return { kind: 'lognormal', median: Number(median), sigma: Number(sigma), max: most };
    }
  }
  throw new Error(expected);
}
