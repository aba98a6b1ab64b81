import { describe, expect, it } from 'vitest';
import { findInconsistency, type KvCacheSnapshot } from '../../kvcache/integrity.js';

/** Blocks of 8: request 1 holds 0 and 3, request 2 holds 1; 2 and 4 are free. */
function sound(): KvCacheSnapshot {
  return {
    tokensPerBlock: 8,
    free: [4, 2],
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
