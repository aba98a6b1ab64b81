/** The block manager's state as plain data. */
export interface KvCacheSnapshot {
  tokensPerBlock: number;
  free: ArrayLike<number>;
  /** One entry for each block of the pool. */
  referenceCounts: ArrayLike<number>;
  sequences: Iterable<{ requestId: bigint; length: number; blocks: ArrayLike<number> }>;
}

/** The first inconsistency as a sentence, or null: every block is either free or in as many tables as it has references. */
export function findInconsistency(cache: KvCacheSnapshot): string | null {
  const numBlocks = cache.referenceCounts.length;
  const holders = new Int32Array(numBlocks);
  for (const { requestId, length, blocks } of cache.sequences) {
    const needed = Math.ceil(length / cache.tokensPerBlock);
    if (blocks.length !== needed) {
      return (
        `Request ${requestId} has ${length} tokens and should hold ${needed} blocks of ${cache.tokensPerBlock}; ` +
        `its table has ${blocks.length}.`
      );
    }
    for (let index = 0; index < blocks.length; index += 1) {
      const block = blocks[index]!;
      if (!(block >= 0 && block < numBlocks)) {
        return `Entry ${index} of request ${requestId}'s table is block ${block}; the pool has ${numBlocks}.`;
      }
      holders[block]! += 1;
    }
  }
  const isFree = new Uint8Array(numBlocks);
  for (let index = 0; index < cache.free.length; index += 1) {
    const block = cache.free[index]!;
    if (!(block >= 0 && block < numBlocks)) {
      return `The free list names block ${block}; the pool has ${numBlocks}.`;
    }
    if (isFree[block] === 1) return `Block ${block} is in the free list twice.`;
    isFree[block] = 1;
  }
  return findWrongCount(cache.referenceCounts, holders, isFree);
}

function findWrongCount(
  referenceCounts: ArrayLike<number>,
  holders: Int32Array,
  isFree: Uint8Array,
): string | null {
  for (let block = 0; block < holders.length; block += 1) {
    const references = referenceCounts[block]!;
    if (holders[block] !== references) {
      return `Block ${block} is in ${holders[block]} tables but has ${references} references.`;
    }
    if (isFree[block] === 1 && references > 0) {
      return `Block ${block} is free but has ${references} references.`;
    }
    if (isFree[block] === 0 && references === 0) {
      return `Block ${block} is lost: it is neither free nor in a table.`;
    }
  }
  return null;
}
