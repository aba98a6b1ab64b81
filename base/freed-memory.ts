/**
 * Tells the garbage collector of shared memory that nobody refers to any more. It does not count that memory, and would not run for
 * gigabytes of it: an unshared buffer of the size counts, and costs nothing while nobody writes to it.
 */
export function noteFreed(bytes: number): void {
  new ArrayBuffer(bytes);
}
