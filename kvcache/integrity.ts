import type { PrefixNode } from './prefix-tree.js';

/** The block manager's state as plain data. */
export interface KvCacheSnapshot {
  tokensPerBlock: number;
  free: ArrayLike<number>;
  /** One entry for each block of the pool. */
  referenceCounts: ArrayLike<number>;
  sequences: Iterable<{ requestId: bigint; length: number; blocks: ArrayLike<number> }>;
  roots: Iterable<PrefixNode>;
  /** Entry of each block that is in the tree. */
  nodes: readonly (PrefixNode | undefined)[];
  /** Blocks of the tree without a reference. */
  numCached: number;
  isEvictable(block: number): boolean;
}

/**
 * The first inconsistency as a sentence, or null. Every block is free, or in as many tables as it has references, or
 * kept in the tree: free + held + cached is the whole pool.
 */
export function findInconsistency(cache: KvCacheSnapshot): string | null {
  const numBlocks = cache.referenceCounts.length;
  const holders = new Int32Array(numBlocks);
  const wrongTable = countHolders(cache, holders);
  if (wrongTable !== null) return wrongTable;
  const isFree = new Uint8Array(numBlocks);
  for (let index = 0; index < cache.free.length; index += 1) {
    const block = cache.free[index]!;
    if (!(block >= 0 && block < numBlocks)) {
      return `The free list names block ${block}; the pool has ${numBlocks}.`;
    }
    if (isFree[block] === 1) return `Block ${block} is in the free list twice.`;
    isFree[block] = 1;
  }
  const inTree = new Uint8Array(numBlocks);
  for (const root of cache.roots) {
    const wrong = findWrongNode(cache, root, inTree);
    if (wrong !== null) return wrong;
  }
  return findWrongCount(cache, holders, isFree, inTree);
}

function countHolders(cache: KvCacheSnapshot, holders: Int32Array): string | null {
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
      if (!(block >= 0 && block < holders.length)) {
        return `Entry ${index} of request ${requestId}'s table is block ${block}; the pool has ${holders.length}.`;
      }
      holders[block]! += 1;
    }
  }
  return null;
}

/** Walks the tree below `node`. A block that is held keeps all its ancestors held. */
function findWrongNode(cache: KvCacheSnapshot, node: PrefixNode, inTree: Uint8Array): string | null {
  const { tokensPerBlock, nodes, referenceCounts } = cache;
  for (const child of node.children) {
    const { block, tokens } = child;
    if (tokens.length !== tokensPerBlock)
      return `Block ${block} of the tree has ${tokens.length} tokens, not ${tokensPerBlock}.`;
    if (nodes[block] !== child)
      return `Block ${block} is in the tree, but the tree's node is not the one on record.`;
    if (inTree[block] === 1) return `Block ${block} is in the tree twice.`;
    if (child.parent !== node) return `Block ${block} of the tree does not know its parent.`;
    inTree[block] = 1;
    const isHeld = referenceCounts[block]! > 0;
    if (isHeld && node.parent !== null && referenceCounts[node.block] === 0) {
      return `Block ${block} is held, but block ${node.block} before it is not.`;
    }
    const shouldBeEvictable = !isHeld && child.children.length === 0;
    if (cache.isEvictable(block) !== shouldBeEvictable) {
      return `Block ${block} is ${shouldBeEvictable ? 'an unused leaf but not' : 'no unused leaf but'} evictable.`;
    }
    const wrong = findWrongNode(cache, child, inTree);
    if (wrong !== null) return wrong;
  }
  return null;
}

function findWrongCount(
  { referenceCounts, nodes, numCached }: KvCacheSnapshot,
  holders: Int32Array,
  isFree: Uint8Array,
  inTree: Uint8Array,
): string | null {
  let cached = 0;
  for (let block = 0; block < holders.length; block += 1) {
    const references = referenceCounts[block]!;
    if (holders[block] !== references) {
      return `Block ${block} is in ${holders[block]} tables but has ${references} references.`;
    }
    if (isFree[block] === 1 && references > 0) {
      return `Block ${block} is free but has ${references} references.`;
    }
    if (isFree[block] === 1 && inTree[block] === 1) return `Block ${block} is free but in the tree.`;
    if (inTree[block] === 0 && nodes[block]) return `Block ${block} is on record as in the tree but is not.`;
    if (isFree[block] === 0 && inTree[block] === 0 && references === 0) {
      return `Block ${block} is lost: it is neither free nor in a table nor in the tree.`;
    }
    if (inTree[block] === 1 && references === 0) cached += 1;
  }
  return cached === numCached ? null : `${cached} blocks are cached, but ${numCached} are counted.`;
}
