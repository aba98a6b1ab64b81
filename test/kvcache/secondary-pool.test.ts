import { describe, expect, it } from 'vitest';
import type { KvCacheEventData } from '../../kvcache/cache-events.js';
import { KvCacheManager, type KvCacheOptions } from '../../kvcache/kv-cache-manager.js';
import type { Retention } from '../../kvcache/retention.js';

const SIZE = 8;

/** Primary blocks 0 to 3, secondary ones 4 and 5. */
function cache(options: Partial<KvCacheOptions> = {}): KvCacheManager {
  return new KvCacheManager({
    numBlocks: 4,
    numSecondaryBlocks: 2,
    tokensPerBlock: SIZE,
    maxSeqLen: 32,
    enableBlockReuse: true,
    maxEvents: 100,
    ...options,
  });
}

/** from, from + 1, ... */
const count = (length: number, from = 1) => Int32Array.from({ length }, (_, index) => from + index);

/** Adds a sequence and returns the tokens found, its table, and the copies it asked for as [source, target]. */
function add(kv: KvCacheManager, requestId: bigint, tokens: Int32Array, retention?: Retention) {
  const shared = { tokens, salt: 0n, ...(retention ? { retention } : {}) };
  expect(kv.addSequence(requestId, tokens.length, shared)).toBe(true);
  kv.checkIntegrity();
  const table = new Int32Array(4);
  const numBlocks = kv.writeBlockTable(requestId, table, 0, 4);
  const { source, target } = kv.drainCopies() ?? { source: [], target: [] };
  kv.drainNewBlocks(new Int32Array(kv.numBlocks));
  return {
    found: kv.reuseOf(requestId).reusedTokens,
    table: Array.from(table.subarray(0, numBlocks)),
    copies: Array.from(source, (block, index) => [block, target[index]]),
  };
}

function end(kv: KvCacheManager, requestId: bigint, tokens: Int32Array): void {
  kv.store(requestId, tokens, tokens.length);
  kv.freeSequence(requestId);
  kv.checkIntegrity();
}

function run(kv: KvCacheManager, requestId: bigint, tokens: Int32Array, retention?: Retention) {
  const added = add(kv, requestId, tokens, retention);
  end(kv, requestId, tokens);
  return added;
}

/** Takes all primary blocks for a moment, so that everything cached is evicted. */
function flood(kv: KvCacheManager): number[][] {
  const { copies } = add(kv, 99n, count(32, 900));
  kv.freeSequence(99n);
  kv.checkIntegrity();
  return copies as number[][];
}

const dataOf = (kv: KvCacheManager): KvCacheEventData[] => kv.drainEvents().map(({ data }) => data);

describe('swapping out', () => {
  it('moves what is evicted, tail first, and tells of two levels', () => {
    const kv = cache();
    run(kv, 1n, count(16)); // blocks 0 and 1
    const [created, stored] = dataOf(kv);
    expect(created).toEqual({ type: 'created', numBlocksPerCacheLevel: [4, 2] });
    const [head, tail] = stored!.type === 'stored' ? stored!.blocks.map((block) => block.blockHash) : [];
    expect(flood(kv)).toEqual([
      [1, 4],
      [0, 5],
    ]);
    const cacheLevel = { oldValue: 0, newValue: 1 };
    expect(dataOf(kv)).toEqual([
      { type: 'updated', blockHash: tail, cacheLevel },
      { type: 'updated', blockHash: head, cacheLevel },
    ]);
    expect(kv.stats()).toMatchObject({
      freeBlocks: 4,
      secondaryMaxBlocks: 2,
      secondaryUsedBlocks: 2,
      swappedOutBlocks: 2,
      swappedInBlocks: 0,
    });
  });

  it('drops the least recently used of the secondary pool when that is full', () => {
    const kv = cache();
    run(kv, 1n, count(8));
    run(kv, 2n, count(8, 100));
    run(kv, 3n, count(8, 200));
    dataOf(kv);
    flood(kv);
    expect(dataOf(kv).map(({ type }) => type)).toEqual(['updated', 'updated', 'removed', 'updated']);
    expect(kv.stats()).toMatchObject({ secondaryUsedBlocks: 2, swappedOutBlocks: 3 });
    expect(run(kv, 4n, count(9)).found).toBe(0);
    expect(run(kv, 5n, count(9, 100)).found).toBe(8);
    expect(run(kv, 6n, count(9, 200)).found).toBe(8);
  });

  it.each([
    [29, undefined, 0],
    [30, undefined, 8],
    [30, 31, 0],
    [0, 0, 8],
  ])(
    'a block of priority %i, with secondaryOffloadMinPriority %s, is found again: %i',
    (priority, least, found) => {
      const kv = cache(least === undefined ? {} : { secondaryOffloadMinPriority: least });
      run(kv, 1n, count(8), { ranges: [{ start: 0, priority }] });
      flood(kv);
      expect(run(kv, 2n, count(9)).found).toBe(found);
    },
  );

  it('does not drop what is worth more for what is worth less', () => {
    const kv = cache({ numSecondaryBlocks: 1 });
    run(kv, 1n, count(8), { ranges: [{ start: 0, priority: 80 }] });
    flood(kv);
    run(kv, 2n, count(8, 100));
    expect(flood(kv)).toEqual([]);
    expect(run(kv, 3n, count(9, 100)).found).toBe(0);
    expect(run(kv, 4n, count(9)).found).toBe(8);
  });

  it('takes a block of low priority along where others are swapped out behind it', () => {
    const kv = cache();
    run(kv, 1n, count(16), { ranges: [{ start: 0, end: 8, priority: 1 }] });
    expect(flood(kv)).toHaveLength(2);
    expect(run(kv, 2n, count(17)).found).toBe(16);
  });

  it('lets a priority end there, too', () => {
    const kv = cache({ numSecondaryBlocks: 1 });
    kv.advanceClock(0);
    run(kv, 1n, count(8), { ranges: [{ start: 0, priority: 80, durationMs: 1000 }] });
    flood(kv);
    run(kv, 2n, count(8, 100));
    kv.advanceClock(1000);
    kv.checkIntegrity();
    expect(flood(kv)).toHaveLength(1);
    expect(run(kv, 3n, count(9)).found).toBe(0);
  });
});

describe('a hit on what was swapped out', () => {
  it('brings it back, head first, to blocks of the primary pool', () => {
    const kv = cache();
    run(kv, 1n, count(16));
    flood(kv);
    const hashes = new Set(dataOf(kv).flatMap((data) => (data.type === 'updated' ? [data.blockHash] : [])));
    const { found, table, copies } = run(kv, 2n, count(17));
    expect(found).toBe(16);
    expect(copies).toEqual([
      [5, table[0]],
      [4, table[1]],
    ]);
    expect(kv.stats()).toMatchObject({ secondaryUsedBlocks: 0, swappedInBlocks: 2, reusedBlocks: 2 });
    const back = dataOf(kv).flatMap((data) => (data.type === 'updated' ? [data] : []));
    expect(back.map(({ blockHash }) => hashes.has(blockHash))).toEqual([true, true]);
    expect(back).toMatchObject(back.map(() => ({ cacheLevel: { oldValue: 1, newValue: 0 } })));
  });

  it('counts it as reused and not as new', () => {
    const kv = cache();
    run(kv, 1n, count(16));
    flood(kv);
    const { allocTotalBlocks, allocNewBlocks } = kv.stats();
    add(kv, 2n, count(17));
    expect(kv.stats()).toMatchObject({
      allocTotalBlocks: allocTotalBlocks + 3,
      allocNewBlocks: allocNewBlocks + 1,
    });
  });

  it('exchanges blocks in an order that loses nothing', () => {
    const kv = cache({ numSecondaryBlocks: 1 });
    run(kv, 1n, count(8)); // block 0
    flood(kv); // block 0's content is in 4
    run(kv, 2n, count(32, 100)); // fills the primary pool
    const { table, copies } = run(kv, 3n, count(9));
    // A block is evicted to make room: the only secondary block is wanted, so it is dropped. The next one has a place.
    expect(copies).toEqual([
      [4, table[0]],
      [table[1], 4],
    ]);
  });

  it('needs room in the primary pool, and changes nothing where there is none', () => {
    const kv = cache();
    run(kv, 1n, count(8));
    flood(kv);
    add(kv, 2n, count(24, 100));
    dataOf(kv);
    const before = kv.stats();
    expect(kv.addSequence(3n, 9, { tokens: count(9), salt: 0n })).toBe(false);
    kv.checkIntegrity();
    expect(kv.stats()).toEqual(before);
    expect([kv.drainCopies(), dataOf(kv)]).toEqual([null, []]);
  });

  it.each([
    [true, 6],
    [false, 6],
  ])('copies a part of it and leaves it there; copyOnPartialReuse %s', (copyOnPartialReuse, common) => {
    const kv = cache({ copyOnPartialReuse });
    run(kv, 1n, count(8));
    flood(kv);
    const fork = Int32Array.of(...count(common), ...count(4, 50));
    const { found, table, copies } = add(kv, 2n, fork);
    expect([found, copies]).toEqual([common, [[4, table[0]]]]);
    expect(kv.stats()).toMatchObject({ secondaryUsedBlocks: 1, swappedInBlocks: 0 });
    kv.freeSequence(2n);
    expect(run(kv, 3n, count(9)).found).toBe(8);
  });

  it('does not evict the part that is about to be copied', () => {
    const kv = cache({ numSecondaryBlocks: 1 });
    run(kv, 1n, count(8));
    flood(kv); // in 4
    run(kv, 2n, count(32, 100), { ranges: [{ start: 0, priority: 90 }] }); // would take 4 otherwise
    const { table, copies } = add(kv, 3n, Int32Array.of(...count(6), ...count(2, 50)));
    expect(copies).toEqual([[4, table[0]]]);
  });
});

it('a request that has computed a swapped-out block gives its own for it', () => {
  const kv = cache();
  for (const requestId of [1n, 2n]) add(kv, requestId, count(9));
  end(kv, 1n, count(9));
  add(kv, 3n, count(16, 100)); // request 1's block is swapped out, request 2 still has its own
  kv.freeSequence(3n);
  expect(kv.stats().secondaryUsedBlocks).toBe(1);
  dataOf(kv);
  kv.store(2n, count(9), 9);
  kv.checkIntegrity();
  expect(kv.stats()).toMatchObject({ secondaryUsedBlocks: 0, swappedInBlocks: 0 });
  expect(dataOf(kv)).toMatchObject([{ type: 'updated', cacheLevel: { oldValue: 1, newValue: 0 } }]);
  expect(kv.drainCopies()).toBeNull();
  kv.freeSequence(2n);
  kv.checkIntegrity();
  expect(run(kv, 4n, count(9)).found).toBe(8);
});

it.each([
  [{ numSecondaryBlocks: -1 }, 'numSecondaryBlocks is -1'],
  [{ numSecondaryBlocks: 0.5 }, 'numSecondaryBlocks is 0.5'],
  [{ numSecondaryBlocks: 2 ** 28 }, '268435460 blocks of 8 tokens are more than 2147483647 slots'],
])('refuses %j', (options, sentence) => {
  expect(() => cache(options)).toThrow(sentence);
});

it('keeps swapped-out blocks of different adapters apart', () => {
  const kv = cache({ numSecondaryBlocks: 8 });
  const tokens = count(16);
  const ask = (requestId: bigint, loraId: bigint | null) => {
    kv.addSequence(requestId, 17, { tokens: count(17), salt: 0n, loraId });
    const { reusedTokens } = kv.reuseOf(requestId);
    kv.drainCopies();
    kv.store(requestId, tokens, 16);
    kv.freeSequence(requestId);
    kv.checkIntegrity();
    return reusedTokens;
  };
  expect(ask(1n, 7n)).toBe(0);
  flood(kv);
  expect(kv.stats().secondaryUsedBlocks).toBeGreaterThan(0);
  expect([ask(2n, null), ask(3n, 8n)]).toEqual([0, 0]);
  expect(ask(4n, 7n)).toBe(16);
});
