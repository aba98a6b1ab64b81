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
 * Adopted blocks have no holder afterwards: they are found and evicted like any other cached block.
 */
export function adoptBlocks(
  cache: BlockCache,
  key: ReuseKey,
  tokens: Int32Array,
  { first, count, tokensPerBlock: size }: { first: number; count: number; tokensPerBlock: number },
): AdoptedBlocks {
  const full = Math.min(first + count, Math.floor(tokens.length / size));
  const { nodes: known } = cache.tree.match(key, tokens, full * size);
  const held: PrefixNode[] = [];
  const blocks: number[] = [];
  const stored: StoredBlock[] = [];
  // Swapping a block back in may push other blocks out of the secondary pool, but not those that follow it.
  cache.whilePinned(known.at(-1) ?? null, () => {
    for (const node of known) {
      if (!cache.isPrimary(node) && cache.availableBlocks === 0) return;
      cache.acquire(node);
      held.push(node);
    }
    let node = known.at(-1) ?? cache.tree.root(key);
    for (let index = known.length; index >= first && index < full && cache.availableBlocks > 0; index++) {
      const block = cache.take();
      node = cache.insert(node, tokens, index * size, block, null);
      blocks.push(block);
      held.push(node);
      const { hash: blockHash, priority } = node;
      const { loraId = null, salt: cacheSalt } = key;
      stored.push({
        blockHash,
        tokens: Array.from(cache.tree.tokensOf(node)),
        loraId,
        cacheSalt,
        cacheLevel: 0,
        priority,
      });
    }
  });
  // The last ones first, so that tails are evicted before heads.
  for (const one of held.reverse()) cache.release(one.block);
  const parentHash = known.at(-1)?.hash ?? null;
  if (stored.length > 0) cache.events.add({ type: 'stored', parentHash, blocks: stored });
  return { first: known.length, blocks: Int32Array.from(blocks) };
}

/** Takes blocks out of the tree that were adopted last, before anybody else could find them: their content is of no use. */
export function dropAdopted(
  cache: BlockCache,
  key: ReuseKey,
  tokens: Int32Array,
  { first, blocks }: AdoptedBlocks,
  tokensPerBlock: number,
): void {
  const { nodes } = cache.tree.match(key, tokens, (first + blocks.length) * tokensPerBlock);
  for (const node of nodes.slice(first).reverse()) cache.release(cache.claim(node));
}
