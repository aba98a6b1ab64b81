import type { KvCacheSnapshot, SequenceSnapshot } from './cache-snapshot.js';
import type { PrefixNode } from './prefix-tree.js';

/**
 * The first inconsistency as a sentence, or null. Every block is in exactly one place. A primary block is free, or in as
 * many tables as it has references, or kept in the tree: free + held + cached is the whole pool. A secondary block is
 * free or in the tree, once, and in no table.
 */
export function findInconsistency(cache: KvCacheSnapshot): string | null {
  const numPrimary = cache.referenceCounts.length;
  const numBlocks = numPrimary + cache.numSecondaryBlocks;
  const holders = new Int32Array(numPrimary);
  const wrongTable = countHolders(cache, holders);
  if (wrongTable !== null) return wrongTable;
  const isFree = new Uint8Array(numBlocks);
  const wrongList =
    markFree(cache.free, isFree, { name: 'free list', first: 0, end: numPrimary }) ??
    markFree(cache.secondaryFree, isFree, { name: 'secondary free list', first: numPrimary, end: numBlocks });
  if (wrongList !== null) return wrongList;
  const inTree = new Uint8Array(numBlocks);
  const seen = { blocks: inTree, places: new Set<number>() };
  for (const root of cache.roots) {
    const wrong = findWrongNode(cache, root, seen);
    if (wrong !== null) return wrong;
  }
  return findWrongCount(cache, holders, isFree, inTree) ?? findWrongSecondary(cache, isFree, inTree);
}

function markFree(
  free: ArrayLike<number>,
  isFree: Uint8Array,
  { name, first, end }: { name: string; first: number; end: number },
): string | null {
  for (let index = 0; index < free.length; index += 1) {
    const block = free[index]!;
    if (!(block >= first && block < end)) {
      return `The ${name} names block ${block}; the pool has ${first === 0 ? end : `${first} to ${end - 1}`}.`;
    }
    if (isFree[block] === 1) return `Block ${block} is in the ${name} twice.`;
    isFree[block] = 1;
  }
  return null;
}

function countHolders(cache: KvCacheSnapshot, holders: Int32Array): string | null {
  for (const sequence of cache.sequences) {
    for (const [index, blocks] of [sequence.blocks, ...(sequence.further ?? [])].entries()) {
      const wrong = countTable(cache, sequence, { index, blocks }, holders);
      if (wrong !== null) return wrong;
    }
  }
  return null;
}

function countTable(
  cache: KvCacheSnapshot,
  { requestId, length, further = [] }: SequenceSnapshot,
  { index, blocks }: { index: number; blocks: ArrayLike<number> },
  holders: Int32Array,
): string | null {
  const table = `request ${requestId}'s table${index === 0 ? '' : ` ${index}`}`;
  const needed = Math.min(Math.ceil(length / cache.tokensPerBlock), cache.maxBlocks);
  if (blocks.length !== needed) {
    return (
      `Request ${requestId} has ${length} tokens and should hold ${needed} blocks of ${cache.tokensPerBlock}; ` +
      `its table has ${blocks.length}.`
    );
  }
  for (let entry = 0; entry < blocks.length; entry += 1) {
    const block = blocks[entry]!;
    if (!(block >= 0 && block < holders.length)) {
      return `Entry ${entry} of ${table} is block ${block}; the pool has ${holders.length}.`;
    }
    holders[block]! += 1;
  }
  const last = blocks[needed - 1]!;
  const isWritten = length % cache.tokensPerBlock !== 0;
  if (further.length > 0 && isWritten && cache.referenceCounts[last] !== 1) {
    return `Block ${last}, into which ${table} writes, has ${cache.referenceCounts[last]} references.`;
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

function findWrongSecondary(
  { referenceCounts, numSecondaryBlocks, nodes }: KvCacheSnapshot,
  isFree: Uint8Array,
  inTree: Uint8Array,
): string | null {
  for (let index = 0; index < numSecondaryBlocks; index += 1) {
    const block = referenceCounts.length + index;
    if (isFree[block] === 1 && inTree[block] === 1) return `Block ${block} is free but in the tree.`;
    if (inTree[block] === 0 && nodes[block]) return `Block ${block} is on record as in the tree but is not.`;
    if (isFree[block] === 0 && inTree[block] === 0) {
      return `Block ${block} of the secondary pool is lost: it is neither free nor in the tree.`;
    }
  }
  return null;
}

/** What a walk through the tree has seen. */
interface SeenInTree {
  /** 1: the block is in the tree [numBlocks]. */
  blocks: Uint8Array;
  /** Places of tokens. */
  places: Set<number>;
}

/**
 * Walks the tree below `node`, marks its blocks in `seen`, and returns the first inconsistency as a sentence, or null.
 * All ancestors of a held block must be held; below a swapped-out block there must be only swapped-out ones.
 */
function findWrongNode(cache: KvCacheSnapshot, node: PrefixNode, seen: SeenInTree): string | null {
  const { nodes } = cache;
  let primaryChildren = 0;
  for (const child of node.children) {
    const { block, place } = child;
    if (seen.places.has(place))
      return `Block ${block} of the tree has its tokens where another one has them.`;
    if (nodes[block] !== child)
      return `Block ${block} is in the tree, but the tree's node is not the one on record.`;
    if (seen.blocks[block] === 1) return `Block ${block} is in the tree twice.`;
    if (child.parent !== node) return `Block ${block} of the tree does not know its parent.`;
    seen.blocks[block] = 1;
    seen.places.add(place);
    if (isPrimary(cache, child)) primaryChildren += 1;
    const wrong = findWrongPlace(cache, node, child) ?? findWrongNode(cache, child, seen);
    if (wrong !== null) return wrong;
  }
  if (primaryChildren === node.primaryChildren) return null;
  return `Block ${node.block} has ${primaryChildren} primary blocks after it, but ${node.primaryChildren} are counted.`;
}

function findWrongPlace(cache: KvCacheSnapshot, parent: PrefixNode, child: PrefixNode): string | null {
  const { block } = child;
  const hasParent = parent.parent !== null;
  if (isPrimary(cache, child) && hasParent && !isPrimary(cache, parent)) {
    return `Block ${block} is in the primary pool, but block ${parent.block} before it is swapped out.`;
  }
  if (isHeld(cache, child) && hasParent && !isHeld(cache, parent)) {
    return `Block ${block} is held, but block ${parent.block} before it is not.`;
  }
  const isLeaf = !child.children.some((next) => isPrimary(cache, next) || !isPrimary(cache, child));
  const shouldBeEvictable = isLeaf && !isHeld(cache, child);
  if (cache.isEvictable(block) === shouldBeEvictable) return null;
  return `Block ${block} is ${shouldBeEvictable ? 'an unused leaf but not' : 'no unused leaf but'} evictable.`;
}

function isPrimary({ referenceCounts }: KvCacheSnapshot, { block }: PrefixNode): boolean {
  return block < referenceCounts.length;
}

/** False for a swapped-out block, which never has a holder. */
function isHeld({ referenceCounts }: KvCacheSnapshot, { block }: PrefixNode): boolean {
  return block < referenceCounts.length && referenceCounts[block]! > 0;
}
