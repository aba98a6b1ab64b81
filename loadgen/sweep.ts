import type { RunReport } from './report/schema.js';

/** A load and what the server made of it. */
export interface SweepPoint {
  load: number;
  /** Requests a second that were answered. */
  throughput: number;
}

/** More load by a factor f that gains less than this share of f - 1 in throughput is more than the server takes. */
const WORTHWHILE = 0.25;
/** Doublings after which a sweep gives up. */
const MOST_POINTS = 24;

/** Where throughput has stopped to grow with the load: indexes of the last point that paid and the first that did not. */
export function saturation(points: readonly SweepPoint[]): { last: number; first: number } | null {
  for (let i = 1; i < points.length; i++) {
    const [before, after] = [points[i - 1]!, points[i]!];
    const gain = after.throughput / before.throughput - 1;
    // Nothing before and nothing after is no gain either.
    if (!(gain >= WORTHWHILE * (after.load / before.load - 1))) return { last: i - 1, first: i };
  }
  return null;
}

/**
 * The knee of throughput over load, as Kneedle finds it (Satopaa et al. 2011): with both scaled to 0 .. 1, the point
 * farthest above the diagonal. null where throughput goes on growing with the load, so that there is none yet.
 */
export function kneeOf(points: readonly SweepPoint[]): number | null {
  if (points.length < 3 || saturation(points) === null) return null;
  const [first, last] = [points[0]!, points.at(-1)!];
  const most = Math.max(...points.map(({ throughput }) => throughput));
  const rise = most - first.throughput;
  if (rise <= 0) return 0;
  let knee = 0;
  let farthest = 0;
  for (const [i, { load, throughput }] of points.entries()) {
    const above = (throughput - first.throughput) / rise - (load - first.load) / (last.load - first.load);
    if (above > farthest) [knee, farthest] = [i, above];
  }
  return knee;
}

/**
 * Loads to run next, one at a time: doubles until the server is saturated, then halves the interval in which it became
 * so. Give it what was measured so far; null when it is done.
 */
export function nextLoad(
  points: readonly SweepPoint[],
  from: number,
  refine: number,
  whole: boolean,
): number | null {
  if (points.length === 0) return from;
  const sorted = points.toSorted((a, b) => a.load - b.load);
  const found = saturation(sorted);
  if (found === null) return points.length < MOST_POINTS ? 2 * sorted.at(-1)!.load : null;
  const doublings = Math.round(Math.log2(Math.max(...points.map(({ load }) => load)) / from)) + 1;
  if (points.length - doublings >= refine) return null;
  const middle = (sorted[found.last]!.load + sorted[found.first]!.load) / 2;
  const next = whole ? Math.round(middle) : middle;
  return points.some(({ load }) => load === next) ? null : next;
}

/** Runs of the same load put together, in the order of loads. */
export function pointsOf(runs: readonly RunReport[]): (SweepPoint & { outputTokens: number })[] {
  const byLoad = new Map<number, RunReport[]>();
  for (const run of runs) if (run.load !== null) byLoad.set(run.load, [...(byLoad.get(run.load) ?? []), run]);
  const mean = (of: readonly number[]) => of.reduce((sum, value) => sum + value, 0) / of.length;
  return [...byLoad]
    .map(([load, same]) => ({
      load,
      throughput: mean(same.map(({ throughput }) => throughput.requests)),
      outputTokens: mean(same.map(({ throughput }) => throughput.outputTokens)),
    }))
    .sort((a, b) => a.load - b.load);
}
