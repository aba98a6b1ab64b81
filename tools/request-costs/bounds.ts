import type { Cost } from './measure.js';

/** Longest time for which a single request may hold the main thread: see SECURITY.md. */
const HOLD_MS = 50;
/**
 * Longest chunk that --max-chunk-ms promises by default on the native executor, besides the rest of an
 * iteration.
 */
const CHUNK_MS = 50;
const MEMORY_BYTES = 32 * 2 ** 20;
const MEMORY_OF_BODY = 4;

/** A request that is refused for its size has been read for that. */
const REFUSED = 2;

/** Time of the calibration on the machine that the bounds are meant for. */
const REFERENCE_MS = 20;

/** Milliseconds as they are on this machine, which is slower than the one that the bounds are meant for; at least 1. */
export function calibrated(): number {
  work(); // compiled
  const times = Array.from({ length: 3 }, () => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.max(1, Math.min(...times) / REFERENCE_MS);
}

/** Work of the kind that handling a request is: JSON, texts, maps, sorting. */
function work(): void {
  const objects = Array.from({ length: 20_000 }, (_, i) => ({ id: i, name: `n${(i * 7919) % 20_000}` }));
  const parsed = JSON.parse(JSON.stringify(objects)) as typeof objects;
  const byName = new Map(parsed.map((one) => [one.name, one]));
  const names = [...byName.keys()].sort();
  if (names.length !== 20_000) throw new Error(`${names.length} names are there; 20000 are expected.`);
}

/** Bounds that a request exceeds, in words; empty: none. `slowness` is the result of `calibrated`. */
export function exceeded(cost: Cost, slowness: number): string[] {
  const { holdMs, iterationMs, fullMs, memoryBytes, bodyBytes, status } = cost;
  const most = {
    holdMs: HOLD_MS * slowness * (status === 200 ? 1 : REFUSED),
    iterationMs: CHUNK_MS * slowness + fullMs,
  };
  const mostBytes = MEMORY_BYTES + MEMORY_OF_BODY * bodyBytes;
  const found: string[] = [];
  if (holdMs > most.holdMs)
    found.push(`the main thread was held for ${ms(holdMs)}, at most ${ms(most.holdMs)} are allowed`);
  if (iterationMs > most.iterationMs)
    found.push(
      `an iteration took ${ms(iterationMs)} of the engine's thread, at most ${ms(most.iterationMs)} are allowed`,
    );
  if (memoryBytes > mostBytes)
    found.push(`${megabytes(memoryBytes)} of memory were taken, at most ${megabytes(mostBytes)} are allowed`);
  return found;
}

export const ms = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
export const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(bytes < 10 * 2 ** 20 ? 1 : 0)} MB`;
