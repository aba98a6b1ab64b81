/**
 * Tells the garbage collector of shared memory that nobody refers to any more. It does not count that memory, and would not run for
 * gigabytes of it: an unshared buffer of the size counts, and costs nothing while nobody writes to it.
 */
export function noteFreed(bytes: number): void {
  try {
    new ArrayBuffer(bytes);
  } catch {
    // The system gives no more memory, or the engine takes no buffer of this size: the collector hears of it later.
  }
}
