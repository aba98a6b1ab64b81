import type { RunReport } from './report/schema.js';

/** A load, and the server's throughput at it. */
export interface SweepPoint {
  load: number;
  /** Answered requests a second. */
  throughput: number;
}

/**
 * Least gain of worthwhile load: with f times the load, throughput must grow by this share of f - 1, or the server is
 * saturated.
 */
const WORTHWHILE = 0.25;
/** Number of points after which doubling gives up. */
const MAX_POINTS = 24;

/**
 * Indexes where throughput stops growing with the load: the last point with a worthwhile gain and the first without;
 * null: none yet.
 */
export function saturation(points: readonly SweepPoint[]): { last: number; first: number } | null {
  for (let i = 1; i < points.length; i++) {
    const [before, after] = [points[i - 1]!, points[i]!];
    const gain = after.throughput / before.throughput - 1;
    // A throughput of 0 before and after is no gain either.
    if (!(gain >= WORTHWHILE * (after.load / before.load - 1))) return { last: i - 1, first: i };
  }
  return null;
}

/**
 * The knee of throughput over load, as Kneedle finds it (Satopaa et al. 2011): with both scaled to 0 .. 1, the point
 * farthest above the diagonal. null where throughput still grows with the load.
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
 * Next load to run: doubled until the server is saturated, then halving the interval in which that happened. @param
 * points results so far. @returns null when the sweep is done.
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
  if (found === null) return points.length < MAX_POINTS ? 2 * sorted.at(-1)!.load : null;
  const doublings = Math.round(Math.log2(Math.max(...points.map(({ load }) => load)) / from)) + 1;
  if (points.length - doublings >= refine) return null;
  const middle = (sorted[found.last]!.load + sorted[found.first]!.load) / 2;
  const next = whole ? Math.round(middle) : middle;
  return points.some(({ load }) => load === next) ? null : next;
}

/** Runs of the same load combined, in the order of loads. */
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
