/** A number of threads as people say it: "1 thread", "2 threads". */
export function threadCount(threads: number): string {
  return `${threads} thread${threads === 1 ? '' : 's'}`;
}
