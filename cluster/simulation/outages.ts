import type { Outage } from './cluster-types.js';

/** Deaths of workers at random times; each comes back after `restartMs`. A worker may die more than once. */
export function drawnDeaths(options: {
  deaths: number;
  workers: number;
  /** Time in which they happen. */
  untilMs: number;
  restartMs: number;
  random: () => number;
}): Outage[] {
  const { deaths, workers, untilMs, restartMs, random } = options;
  return Array.from({ length: deaths }, () => {
    const atMs = random() * untilMs;
    const worker = Math.floor(random() * workers);
    return { worker, atMs, backAtMs: atMs + restartMs, kind: 'death' as const };
  });
}

/**
 * A rolling update, from the last worker to the first: `atOnce` workers are asked to end at a time, and the
 * next ones when these are back.
 *
 *   worker 4   |--restart--|
 *   worker 3   |--restart--|
 *   worker 2               |--restart--|
 */
export function rollingUpdate(options: { atOnce: number; workers: number; restartMs: number }): Outage[] {
  const { atOnce, workers, restartMs } = options;
  return Array.from({ length: workers }, (_, index) => {
    const atMs = Math.floor(index / atOnce) * restartMs;
    return { worker: workers - 1 - index, atMs, backAtMs: atMs + restartMs, kind: 'update' as const };
  });
}
