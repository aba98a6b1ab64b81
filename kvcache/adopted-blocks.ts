import type { BlockCache } from './block-cache.js';
import type { StoredBlock } from './cache-events.js';
import type { PrefixNode, ReuseKey } from './prefix-tree.js';

/** Blocks of the primary pool that wait for a content computed elsewhere. */
export interface AdoptedBlocks {
  /** Number of the first one among the full blocks of the prompt; the others follow it. */
  first: number;
  blocks: Int32Array;
}

/**
 * Puts blocks into the tree whose content another process has computed: the full blocks [first, first + count) of the
 * tokens. The caller writes it before anything else happens to the cache. Those that the tree has already stay as they
 * are, so what is adopted is a tail of what is offered; it is shorter where blocks are scarce, and empty where a block
 * in front of the first one is missing.
 *
 *   in the tree     0 - 1 - 2            offered   2 3 4 5
 *   adopted                   - 3 - 4 - 5
 *
 * Adopted blocks are held by nobody afterwards: they are found, and evicted, as any other cached block.
 */
export function adoptBlocks(
  cache: BlockCache,
  key: ReuseKey,
  tokens: Int32Array,
  { first, count, tokensPerBlock: size }: { first: number; count: number; tokensPerBlock: number },
): AdoptedBlocks {
  const held: PrefixNode[] = [];
  const blocks: number[] = [];
  const stored: StoredBlock[] = [];
  let node = cache.tree.root(key);
  let parentHash: number | null = null;
  let from = first + count;
  for (let index = 0; index < first + count && (index + 1) * size <= tokens.length; index++) {
    const start = index * size;
    const known = cache.tree.child(node, tokens, start);
    const hasRoom = cache.availableBlocks > 0;
    if (known === null ? index < first || !hasRoom : !cache.isPrimary(known) && !hasRoom) break;
    if (known !== null) {
      cache.acquire(known);
      node = known;
    } else {
      const block = cache.take();
      if (blocks.length === 0) {
        from = index;
        parentHash = node.parent === null ? null : node.hash;
      }
      node = cache.insert(node, tokens, start, block, null);
      blocks.push(block);
      const { hash: blockHash, priority } = node;
      const { loraId = null, salt: cacheSalt } = key;
      stored.push({ blockHash, tokens: Array.from(node.tokens), loraId, cacheSalt, cacheLevel: 0, priority });
    }
    held.push(node);
  }
  // The last ones first, so that tails are evicted before heads.
  for (const one of held.reverse()) cache.release(one.block);
  if (stored.length > 0) cache.events.add({ type: 'stored', parentHash, blocks: stored });
  return { first: from, blocks: Int32Array.from(blocks) };
}
