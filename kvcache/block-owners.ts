/**
 * Entries of a block map for blocks that do not belong to one request alone; any other entry is the row of the request
 * that holds the block.
 */
export const BLOCK_FREE = -1;
/** The block is kept for later prompts and has no holder. */
export const BLOCK_CACHED = -2;
/** The block is held by several sequences, or several times. */
export const BLOCK_SHARED = -3;

/** Runs of equal entries, in order: [length, entry, length, entry, ...]. */
export function runsOf(entries: Int32Array): Int32Array {
  const runs: number[] = [];
  for (let start = 0; start < entries.length; ) {
    let end = start + 1;
    while (end < entries.length && entries[end] === entries[start]) end += 1;
    runs.push(end - start, entries[start]!);
    start = end;
  }
  return Int32Array.from(runs);
}
