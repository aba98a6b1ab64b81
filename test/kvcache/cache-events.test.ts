import { describe, expect, it } from 'vitest';
import { cache, count, run } from '../support/reusing-cache.js';

describe('events and statistics', () => {
  it('name the adapter of what is stored, and other blocks for each', () => {
    const kv = cache({ numBlocks: 8 });
    const stored = [{}, { loraId: 0n }, { loraId: 2n ** 64n - 1n }].map((of, i) => {
      run(kv, BigInt(i), count(8), of);
      const { data } = kv.drainEvents().at(-1)!;
      return data.type === 'stored' ? data.blocks[0]! : expect.fail('nothing was stored');
    });
    expect(stored.map(({ loraId }) => loraId)).toEqual([null, 0n, 2n ** 64n - 1n]);
    expect(new Set(stored.map(({ blockHash }) => blockHash)).size).toBe(3);
  });

  it('tell of the pool, of what is stored under what, changed and removed', () => {
    const kv = cache({ numBlocks: 8 });
    run(kv, 1n, count(20));
    const stored = kv.drainEvents();
    expect(stored).toMatchObject([
      { eventId: 0, data: { type: 'created', numBlocksPerCacheLevel: [8] } },
      {
        eventId: 1,
        data: {
          type: 'stored',
          parentHash: null,
          blocks: [
            { tokens: Array.from(count(8)), loraId: null, cacheLevel: 0, priority: 35 },
            { tokens: Array.from(count(8, 9)) },
          ],
        },
      },
    ]);
    const hashes = stored.flatMap(({ data }) =>
      data.type === 'stored' ? data.blocks.map((b) => b.blockHash) : [],
    );
    run(kv, 2n, count(24), { retention: { ranges: [{ start: 8, end: 9, priority: 60 }] } });
    expect(kv.drainEvents()).toMatchObject([
      {
        eventId: 2,
        data: { type: 'updated', blockHash: hashes[1], priority: { oldValue: 35, newValue: 60 } },
      },
      {
        eventId: 3,
        data: { type: 'stored', parentHash: hashes[1], blocks: [{ tokens: Array.from(count(8, 17)) }] },
      },
    ]);
    kv.addSequence(3n, 64);
    const removed = kv.drainEvents().flatMap(({ data }) => (data.type === 'removed' ? data.blockHashes : []));
    expect(removed.slice(1)).toEqual([hashes[1], hashes[0]]);
  });

  it('keep the newest events when nobody drains them', () => {
    const kv = cache({ maxEvents: 2 });
    run(kv, 1n, count(8));
    run(kv, 2n, count(8, 50));
    expect(kv.drainEvents().map(({ eventId }) => eventId)).toEqual([1, 2]);
    expect(kv.drainEvents()).toEqual([]);
  });

  it('count blocks put into tables, taken new, reused and missed', () => {
    const kv = cache();
    run(kv, 1n, count(17));
    run(kv, 2n, count(25));
    expect(kv.stats()).toEqual({
      maxBlocks: 12,
      freeBlocks: 12,
      usedBlocks: 0,
      tokensPerBlock: 8,
      allocTotalBlocks: 3 + 4,
      allocNewBlocks: 3 + 2,
      reusedBlocks: 2,
      missedBlocks: 2 + 1,
      cacheHitRate: 0.4,
      secondaryMaxBlocks: 0,
      secondaryUsedBlocks: 0,
      swappedOutBlocks: 0,
      swappedInBlocks: 0,
      states: null,
      disk: null,
    });
  });
});
