/** A number of threads in words: "1 thread", "2 threads". */
export function threadCount(threads: number): string {
  return `${threads} thread${threads === 1 ? '' : 's'}`;
}
