import { fewerThreads } from '../../base/topology.js';

/** A number of threads in words: "1 thread", "2 threads". */
export function threadCount(threads: number): string {
  return `${threads} thread${threads === 1 ? '' : 's'}`;
}

/** The threads of an executor in words, and, where they are the default and fewer than the machine's processors, why. */
export function threadsWithReason(threads: number): string {
  const why = fewerThreads(threads);
  return why === null ? threadCount(threads) : `${threadCount(threads)} (${why})`;
}
