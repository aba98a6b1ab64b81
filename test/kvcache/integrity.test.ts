import { describe, expect, it } from 'vitest';
import type { KvCacheSnapshot } from '../../kvcache/cache-snapshot.js';
import { findInconsistency } from '../../kvcache/integrity.js';
import { type PrefixNode, PrefixTree } from '../../kvcache/prefix-tree.js';

/** Blocks of 8: request 1 holds 0 and 3, request 2 holds 1; 2 and 4 are free. */
function sound(): KvCacheSnapshot {
  return {
    tokensPerBlock: 8,
    maxBlocks: 4,
    free: [4, 2],
    secondaryFree: [],
    numSecondaryBlocks: 0,
    referenceCounts: [1, 1, 0, 1, 0],
    sequences: [
      { requestId: 1n, length: 9, blocks: [0, 3] },
      { requestId: 2n, length: 8, blocks: [1] },
    ],
    roots: [],
    nodes: [],
    numCached: 0,
    isEvictable: () => false,
  };
}

describe('findInconsistency', () => {
  it('finds nothing in a sound cache', () => {
    expect(findInconsistency(sound())).toBeNull();
  });

  it('accepts a block in two tables if its references say so', () => {
    const shared = { ...sound(), referenceCounts: [2, 0, 0, 1, 0], free: [1, 2, 4] };
    shared.sequences = [
      { requestId: 1n, length: 9, blocks: [0, 3] },
      { requestId: 2n, length: 8, blocks: [0] },
    ];
    expect(findInconsistency(shared)).toBeNull();
  });

  it.each<[string, Partial<KvCacheSnapshot>]>([
    ['Block 2 is lost: it is neither free nor in a table nor in the tree.', { free: [4] }],
    ['Block 4 is in the free list twice.', { free: [4, 2, 4] }],
    ['Block 1 is free but has 1 references.', { free: [4, 2, 1] }],
    ['The free list names block 5; the pool has 5.', { free: [4, 2, 5] }],
    ['Block 5 of the secondary pool is lost: it is neither free nor in the tree.', { numSecondaryBlocks: 1 }],
    ['Block 5 is in the secondary free list twice.', { numSecondaryBlocks: 2, secondaryFree: [5, 5] }],
    [
      'The secondary free list names block 4; the pool has 5 to 6.',
      { numSecondaryBlocks: 2, secondaryFree: [5, 4] },
    ],
    [
      "Entry 1 of request 1's table is block 5; the pool has 5.",
      {
        numSecondaryBlocks: 1,
        secondaryFree: [5],
        sequences: [{ requestId: 1n, length: 9, blocks: [0, 5] }],
      },
    ],
    ['Block 1 is in 1 tables but has 2 references.', { referenceCounts: [1, 2, 0, 1, 0] }],
    ['Block 0 is in 1 tables but has 0 references.', { referenceCounts: [0, 1, 0, 1, 0] }],
    [
      'Request 1 has 17 tokens and should hold 3 blocks of 8; its table has 2.',
      { sequences: [{ requestId: 1n, length: 17, blocks: [0, 3] }] },
    ],
    [
      'Request 1 has 8 tokens and should hold 1 blocks of 8; its table has 2.',
      { sequences: [{ requestId: 1n, length: 8, blocks: [0, 3] }] },
    ],
    [
      "Entry 1 of request 1's table is block -1; the pool has 5.",
      { sequences: [{ requestId: 1n, length: 9, blocks: [0, -1] }] },
    ],
    [
      'Block 1 is in 0 tables but has 1 references.',
      {
        sequences: [
          { requestId: 1n, length: 9, blocks: [0, 3] },
          { requestId: 2n, length: 8, blocks: [3] },
        ],
      },
    ],
  ])('%s', (sentence, change) => {
    expect(findInconsistency({ ...sound(), ...change })).toBe(sentence);
  });
});

describe('findInconsistency in the tree', () => {
  const TOKENS = Int32Array.of(1, 2, 3, 4, 5, 6, 7, 8);

  /** Blocks 0 and 1 are the primary pool, 2 and 3 the secondary one; no request holds any. */
  function cached(first: number, second: number) {
    const tree = new PrefixTree(8);
    const parent = tree.insert(tree.root({ salt: 0n }), TOKENS, 0, first, 35, Number.POSITIVE_INFINITY);
    const child = tree.insert(parent, TOKENS, 0, second, 35, Number.POSITIVE_INFINITY);
    const nodes: PrefixNode[] = [];
    nodes[first] = parent;
    nodes[second] = child;
    if (first < 2) tree.root({ salt: 0n }).primaryChildren = 1;
    if (second < 2) parent.primaryChildren = 1;
    const others = (from: number) => [from, from + 1].filter((block) => block !== first && block !== second);
    const snapshot: KvCacheSnapshot = {
      tokensPerBlock: 8,
      maxBlocks: 4,
      free: others(0),
      secondaryFree: others(2),
      numSecondaryBlocks: 2,
      referenceCounts: [0, 0],
      sequences: [],
      roots: tree.roots,
      nodes,
      numCached: [first, second].filter((block) => block < 2).length,
      isEvictable: (block) => block === second || (block === first && first < 2 && second >= 2),
    };
    return { parent, snapshot };
  }

  it.each([
    [0, 1],
    [1, 2],
    [3, 2],
  ])('finds nothing where %i lies before %i', (first, second) => {
    expect(findInconsistency(cached(first, second).snapshot)).toBeNull();
  });

  it('finds two blocks whose tokens lie in one place', () => {
    const { parent, snapshot } = cached(0, 1);
    Object.assign(parent.children[0]!, { place: parent.place });
    expect(findInconsistency(snapshot)).toBe(
      'Block 1 of the tree has its tokens where another one has them.',
    );
  });

  it('finds a primary block behind one that is swapped out', () => {
    expect(findInconsistency(cached(2, 0).snapshot)).toBe(
      'Block 0 is in the primary pool, but block 2 before it is swapped out.',
    );
  });

  it('finds a block that is free and in the tree', () => {
    const { snapshot } = cached(0, 3);
    expect(findInconsistency({ ...snapshot, secondaryFree: [2, 3] })).toBe(
      'Block 3 is free but in the tree.',
    );
  });

  it('finds a wrong count of primary blocks behind a block', () => {
    const { parent, snapshot } = cached(0, 3);
    parent.primaryChildren = 1;
    expect(findInconsistency(snapshot)).toBe('Block 0 has 0 primary blocks after it, but 1 are counted.');
  });

  it('finds a leaf of the secondary pool that nothing would ever evict', () => {
    const { snapshot } = cached(0, 3);
    expect(findInconsistency({ ...snapshot, isEvictable: (block) => block === 0 })).toBe(
      'Block 3 is an unused leaf but not evictable.',
    );
  });
});
