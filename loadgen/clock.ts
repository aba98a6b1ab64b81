/**
 * Offset of performance.now(), which counts from the start of its process, from process.hrtime, which counts from one
 * point for all processes of a machine but makes a BigInt. Both read the same clock, so the offset is constant and
 * found once: the smallest of several, since a delay between two readings only makes it larger.
 */
const offsetMs = Math.min(
  ...Array.from({ length: 16 }, () => {
    const own = performance.now();
    return Number(process.hrtime.bigint()) / 1e6 - own;
  }),
);

/** Milliseconds of the machine's monotonic clock, comparable between its processes. */
export function monotonicMs(): number {
  return performance.now() + offsetMs;
}
