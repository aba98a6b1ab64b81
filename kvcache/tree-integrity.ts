import type { KvCacheSnapshot } from './cache-snapshot.js';
import type { PrefixNode } from './prefix-tree.js';

/** What a walk through the tree has seen. */
export interface SeenInTree {
  /** 1: the block is in the tree [numBlocks]. */
  blocks: Uint8Array;
  /** Places of tokens. */
  places: Set<number>;
}

/**
 * Walks the tree below `node`, marks its blocks in `seen`, and returns the first inconsistency as a sentence, or null.
 * All ancestors of a held block must be held; below a swapped-out block there must be only swapped-out ones.
 */
export function findWrongNode(cache: KvCacheSnapshot, node: PrefixNode, seen: SeenInTree): string | null {
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
  return `Block ${node.block} has ${primaryChildren} primary blocks behind it, but ${node.primaryChildren} are counted.`;
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

/** False for a swapped-out block: nobody holds one. */
function isHeld({ referenceCounts }: KvCacheSnapshot, { block }: PrefixNode): boolean {
  return block < referenceCounts.length && referenceCounts[block]! > 0;
}
