import { Random } from '../random.js';
import type { Dataset, Sample } from '../samples.js';
import { type ArrivalOptions, arrivalTimes } from './arrivals.js';

/** Number of the random stream of arrivals. */
const ARRIVALS = 1;

/** One entry of the schedule. */
export interface Scheduled {
  /** Number of its first request; a conversation has a request for each turn. */
  request: number;
  sampleNumber: number;
  sample: Sample;
  /** Milliseconds from the start of the run; NaN in a closed loop, where a slot decides. */
  offsetMs: number;
}

export interface ScheduleBounds {
  /** Most requests, of all turns; the last conversation may exceed it. Infinity: no limit. */
  requests: number;
  /** Milliseconds from which on nothing arrives. Infinity: no limit. */
  durationMs: number;
}

/** Arrival times of a trace, in seconds. */
export type TraceTimes = readonly number[];

/**
 * Entries of the schedule in the order of their offsets, the same for a seed. A dataset smaller than the schedule
 * begins again.
 */
export function* schedule(
  arrivals: ArrivalOptions,
  dataset: Dataset,
  seed: number,
  bounds: ScheduleBounds,
  traceTimes: TraceTimes = [],
): Generator<Scheduled, void> {
  const times = offsets(arrivals, seed, traceTimes);
  for (let request = 0, i = 0; request < bounds.requests; i++) {
    const next = times.next();
    if (next.done) return;
    const offsetMs = next.value * 1000;
    if (offsetMs >= bounds.durationMs) return;
    const sampleNumber = i % dataset.size;
    const sample = dataset.sample(sampleNumber);
    yield { request, sampleNumber, sample, offsetMs };
    request += sample.turns.length;
  }
}

function* offsets(arrivals: ArrivalOptions, seed: number, traceTimes: TraceTimes): Generator<number, void> {
  if (arrivals.kind === 'concurrency') for (;;) yield Number.NaN;
  else if (arrivals.kind === 'trace') for (const seconds of traceTimes) yield seconds / arrivals.speed;
  else yield* arrivalTimes(arrivals, new Random(seed, ARRIVALS));
}
