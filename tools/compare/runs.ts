import { median } from '../support/statistics.js';
import type { Rates } from './peer.js';
import type { Shape } from './shapes.js';

const RUNS = 4;
/** Tokens of the longest prompt that is run several times. */
const SHORT_PROMPT_MAX = 2048;

/**
 * Number of runs of a shape in one measurement, the same for every side. A single short prompt is over in some 30 ms: where its
 * memory is touched, or code is run, for the first time, that is what would be timed.
 */
export function runsOf({ sequences, promptTokens, runs }: Shape): number {
  if (runs !== undefined) return runs;
  return sequences === 1 && promptTokens <= SHORT_PROMPT_MAX ? RUNS : 1;
}

/** Medians, without the first of several runs. */
export function medianRates<R extends Rates>(runs: readonly R[]): R {
  const counted = runs.length > 1 ? runs.slice(1) : runs;
  const names = Object.keys(runs[0] ?? {}) as (keyof R)[];
  return Object.fromEntries(
    names.map((name) => [name, median(counted.map((run) => run[name] as number))]),
  ) as R;
}
