import { describe, expect, it } from 'vitest';
import { KvCacheManager, type KvCacheOptions } from '../../kvcache/kv-cache-manager.js';
import type { Retention } from '../../kvcache/retention.js';

const SIZE = 8;

function cache(options: Partial<KvCacheOptions> = {}): KvCacheManager {
  return new KvCacheManager({
    numBlocks: 12,
    tokensPerBlock: SIZE,
    maxSeqLen: 64,
    enableBlockReuse: true,
    maxEvents: 100,
    ...options,
  });
}

/** 1, 2, 3, ... */
const count = (length: number, from = 1) => Int32Array.from({ length }, (_, index) => from + index);

function tableOf(kv: KvCacheManager, requestId: bigint): number[] {
  const table = new Int32Array(8);
  return Array.from(table.subarray(0, kv.writeBlockTable(requestId, table, 0, 8)));
}

interface Run {
  salt?: bigint;
  retention?: Retention;
  /** Leave the sequence in the cache. */
  stays?: boolean;
}

/** A request with one answer token: its context runs, then it ends. Returns what it found. */
function run(kv: KvCacheManager, requestId: bigint, tokens: Int32Array, options: Run = {}) {
  const { salt = 0n, retention, stays = false } = options;
  const shared = { tokens, salt, ...(retention ? { retention } : {}) };
  expect(kv.addSequence(requestId, tokens.length, shared)).toBe(true);
  const found = kv.reuseOf(requestId);
  kv.checkIntegrity();
  kv.drainNewBlocks(new Int32Array(kv.numBlocks));
  kv.store(requestId, tokens, tokens.length);
  kv.checkIntegrity();
  if (!stays) kv.freeSequence(requestId);
  kv.checkIntegrity();
  return found;
}

describe('at the borders of blocks', () => {
  // Second prompt after the first has run: [tokens, full blocks reused, missed].
  const cases: [string, Int32Array, Int32Array, [number, number, number]][] = [
    ['k * size - 1, the same', count(15), count(15), [8, 1, 0]],
    ['k * size, the same: its last token is computed', count(16), count(16), [15, 1, 0]],
    ['k * size + 1, the same', count(17), count(17), [16, 2, 0]],
    ['one block, the same', count(8), count(8), [7, 0, 0]],
    ['a token less than a block: nothing is full', count(7), count(7), [0, 0, 0]],
    ['one token', count(1), count(1), [0, 0, 0]],
    ['extended by one past a border', count(16), count(17), [16, 2, 0]],
    ['extended from a partial block', count(12), count(20), [8, 1, 1]],
    ['extended by a block', count(16), count(24), [16, 2, 0]],
    ['a beginning of it', count(24), count(10), [9, 1, 0]],
    ['a beginning that ends at a border', count(24), count(16), [15, 1, 0]],
    ['a beginning of one token past a border', count(24), count(9), [8, 1, 0]],
    ['diverging at a border', count(24), Int32Array.of(...count(8), ...count(16, 90)), [8, 1, 1]],
    ['diverging in a block', count(24), Int32Array.of(...count(11), ...count(13, 90)), [11, 1, 1]],
    [
      'diverging at the last token of a block',
      count(24),
      Int32Array.of(...count(15), ...count(9, 90)),
      [15, 1, 1],
    ],
    ['diverging at once', count(24), count(24, 90), [0, 0, 2]],
  ];

  it.each(cases)('%s', (_, first, second, [reusedTokens, reusedBlocks, missedBlocks]) => {
    const kv = cache();
    run(kv, 1n, first);
    expect(run(kv, 2n, second)).toEqual({ reusedTokens, reusedBlocks, missedBlocks });
    expect(kv.freeBlocks).toBe(kv.numBlocks);
  });

  it.each(cases)(
    '%s, while the first is still there',
    (_, first, second, [reusedTokens, reusedBlocks, missedBlocks]) => {
      const kv = cache();
      run(kv, 1n, first, { stays: true });
      expect(run(kv, 2n, second, { stays: true })).toEqual({ reusedTokens, reusedBlocks, missedBlocks });
      expect(tableOf(kv, 2n).slice(0, reusedBlocks)).toEqual(tableOf(kv, 1n).slice(0, reusedBlocks));
    },
  );

  it('every prompt of 1 to 3 blocks and a token after every other, diverging anywhere, counts to the token', () => {
    const wrong: unknown[] = [];
    for (let length = 1; length <= 3 * SIZE + 1; length++) {
      for (let next = 1; next <= 3 * SIZE + 1; next++) {
        for (const common of new Set([0, 1, SIZE - 1, SIZE, SIZE + 1, 2 * SIZE, length - 1, length])) {
          if (common > Math.min(length, next)) continue;
          const kv = cache();
          run(kv, 1n, count(length));
          const prompt = Int32Array.of(...count(common), ...count(next - common, 90));
          // Of what the first left in full blocks, what the second has in common, but for its last token.
          const stored = Math.floor(length / SIZE) * SIZE;
          const reusedTokens = Math.min(stored, common, next - 1);
          const reusedBlocks = Math.floor(reusedTokens / SIZE);
          const missedBlocks = Math.floor((next - 1) / SIZE) - reusedBlocks;
          const found = run(kv, 2n, prompt);
          const otherSalt = run(kv, 3n, prompt, { salt: 1n });
          if (
            found.reusedTokens !== reusedTokens ||
            found.reusedBlocks !== reusedBlocks ||
            found.missedBlocks !== missedBlocks ||
            otherSalt.reusedTokens !== 0 ||
            otherSalt.missedBlocks !== reusedBlocks + missedBlocks
          ) {
            wrong.push({ length, next, common, found, otherSalt });
          }
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  it('keeps nothing, and finds nothing, when it is off or the sequence does not share', () => {
    const off = cache({ enableBlockReuse: false });
    run(off, 1n, count(24));
    expect(run(off, 2n, count(24))).toEqual({ reusedTokens: 0, reusedBlocks: 0, missedBlocks: 0 });
    const kv = cache();
    run(kv, 1n, count(24));
    kv.addSequence(2n, 24);
    expect(kv.reuseOf(2n)).toEqual({ reusedTokens: 0, reusedBlocks: 0, missedBlocks: 0 });
    kv.store(2n, count(24, 50), 24);
    kv.freeSequence(2n);
    expect(run(kv, 3n, count(24, 50)).reusedTokens).toBe(0);
  });

  it('keeps only what has been written', () => {
    const kv = cache();
    const tokens = count(24);
    kv.addSequence(1n, 15, { tokens, salt: 0n });
    kv.growSequence(1n, 17);
    kv.store(1n, tokens, 15);
    expect(kv.firstMissingBlock({ tokens, salt: 0n }, 8)).toBeNull();
    expect(kv.firstMissingBlock({ tokens, salt: 0n }, 15)).toBeNull();
    expect(kv.firstMissingBlock({ tokens, salt: 0n }, 16)).not.toBeNull();
    kv.store(1n, tokens, 16);
    expect(kv.firstMissingBlock({ tokens, salt: 0n }, 16)).toBeNull();
    expect(() => kv.store(1n, tokens, 18)).toThrow('18 tokens are to be kept; its table covers 17');
    kv.checkIntegrity();
  });

  it('shares nothing between salts', () => {
    const kv = cache();
    run(kv, 1n, count(24), { salt: 1n });
    expect(run(kv, 2n, count(24), { salt: 2n })).toEqual({
      reusedTokens: 0,
      reusedBlocks: 0,
      missedBlocks: 2,
    });
    expect(run(kv, 3n, count(24)).reusedTokens).toBe(0);
    expect(run(kv, 4n, count(24), { salt: 1n }).reusedTokens).toBe(23);
  });

  it('names the first missing block alike for prompts that would compute the same one', () => {
    const kv = cache();
    run(kv, 1n, count(8));
    const name = (tokens: Int32Array, salt = 0n) => kv.firstMissingBlock({ tokens, salt }, tokens.length);
    expect(name(count(20))).toBe(name(count(16)));
    expect(name(count(16), 1n)).not.toBe(name(count(16)));
    expect(name(Int32Array.of(...count(15), 99))).not.toBe(name(count(16)));
    expect(name(count(8, 9))).not.toBe(name(count(16)));
    expect(name(count(15))).toBeNull();
  });
});

describe('partial reuse', () => {
  it('copies an unused leaf as long as there are other blocks, so that both stay', () => {
    const kv = cache();
    run(kv, 1n, count(16));
    expect(run(kv, 2n, Int32Array.of(...count(12), 77, 78, 79, 80, 81)).reusedTokens).toBe(12);
    expect(run(kv, 3n, count(17)).reusedTokens).toBe(16);
    expect(run(kv, 4n, Int32Array.of(...count(12), 77, 78, 79, 80, 81)).reusedTokens).toBe(16);
  });

  it('evicts what was released before, not the leaf that is copied', () => {
    const kv = cache({ numBlocks: 5, maxSeqLen: 40 });
    run(kv, 1n, count(8)); // the leaf: block 0
    run(kv, 2n, count(32, 100)); // blocks 1 to 4
    expect(run(kv, 3n, Int32Array.of(...count(6), 77, 78, 79)).reusedTokens).toBe(6);
    expect(run(kv, 4n, count(9)).reusedTokens).toBe(8);
  });

  // A header of two blocks and a half and 8 tokens of one's own; ten users ask again and again, in any order.
  it.each([8, 16, 24, 64])('loses no header to the first prompt that leaves it: %i blocks', (numBlocks) => {
    const [copies, claims] = [true, false].map((copyOnPartialReuse) => {
      const kv = cache({ numBlocks, copyOnPartialReuse });
      let reused = 0;
      let random = 1;
      for (let request = 0; request < 300; request++) {
        random = (Math.imul(random, 1103515245) + 12345) >>> 0;
        const user = Math.floor(random / 2 ** 16) % 10;
        const prompt = Int32Array.of(...count(20), ...count(8, 100 * (user + 1)));
        reused += run(kv, BigInt(request), prompt).reusedTokens;
      }
      return reused / (300 * 28);
    });
    expect(copies! - claims!).toBeGreaterThan(0.03);
    // All that can be found is three full blocks of 28 tokens, each time but a user's first.
    if (numBlocks > 8) expect(copies).toBeGreaterThan(0.84);
  });

  it('takes over an unused leaf that it would evict, without zeroing it', () => {
    const kv = cache({ numBlocks: 8 });
    kv.addSequence(9n, 40);
    run(kv, 1n, count(16));
    kv.drainEvents();
    kv.drainNewBlocks(new Int32Array(8));
    const fork = Int32Array.of(...count(12), 77, 78, 79, 80, 81);
    kv.addSequence(2n, 17, { tokens: fork, salt: 0n });
    expect(kv.reuseOf(2n).reusedTokens).toBe(12);
    expect(tableOf(kv, 2n)).toEqual([5, 6, 7]);
    const fresh = new Int32Array(12);
    expect(Array.from(fresh.subarray(0, kv.drainNewBlocks(fresh)))).toEqual([7]);
    expect(kv.drainCopies()).toBeNull();
    expect(kv.drainEvents()).toMatchObject([
      { data: { type: 'removed', blockHashes: [expect.any(Number)] } },
    ]);
    kv.checkIntegrity();
  });

  it('copies a block that is held, and does not zero the copy', () => {
    const kv = cache();
    run(kv, 1n, count(16), { stays: true });
    kv.addSequence(2n, 17, { tokens: Int32Array.of(...count(12), 77, 78, 79, 80, 81), salt: 0n });
    expect(kv.reuseOf(2n)).toEqual({ reusedTokens: 12, reusedBlocks: 1, missedBlocks: 1 });
    expect(tableOf(kv, 2n)).toEqual([0, 2, 3]);
    expect(kv.drainCopies()).toEqual({ source: Int32Array.of(1), target: Int32Array.of(2) });
    expect(kv.drainCopies()).toBeNull();
    const fresh = new Int32Array(12);
    expect(Array.from(fresh.subarray(0, kv.drainNewBlocks(fresh)))).toEqual([3]);
  });

  it('copies a block with blocks behind it, which would be lost otherwise', () => {
    const kv = cache();
    run(kv, 1n, count(24));
    kv.addSequence(2n, 17, { tokens: Int32Array.of(...count(12), 77, 78, 79, 80, 81), salt: 0n });
    expect(kv.drainCopies()).toEqual({ source: Int32Array.of(1), target: expect.any(Int32Array) });
    kv.freeSequence(2n);
    expect(run(kv, 3n, count(24)).reusedTokens).toBe(23);
  });

  it('only takes over where copying is off, and does neither where it is off', () => {
    const fork = Int32Array.of(...count(12), 77, 78, 79, 80, 81);
    const claims = cache({ copyOnPartialReuse: false });
    run(claims, 1n, count(16), { stays: true });
    expect(run(claims, 2n, fork).reusedTokens).toBe(8);
    claims.freeSequence(1n);
    expect(run(claims, 3n, Int32Array.of(...count(12), 66, 67, 68, 69, 70)).reusedTokens).toBe(12);
    const never = cache({ enablePartialReuse: false });
    run(never, 1n, count(16));
    expect(run(never, 2n, fork).reusedTokens).toBe(8);
  });

  it('picks the longest of several common beginnings', () => {
    const kv = cache();
    const variant = (same: number, other: number) =>
      Int32Array.of(...count(8), ...count(same, 9), ...count(8 - same, other));
    for (const [index, same] of [1, 6, 3, 0, 5].entries()) {
      run(kv, BigInt(index), variant(same, 100 + 10 * index), { stays: true });
    }
    expect(run(kv, 9n, Int32Array.of(...count(16), 1)).reusedTokens).toBe(8 + 6);
  });
});

describe('eviction', () => {
  it('takes free blocks first, then tails before heads, the longest released first', () => {
    const kv = cache({ numBlocks: 8 });
    run(kv, 1n, count(24)); // blocks 0 1 2
    run(kv, 2n, count(24, 100)); // blocks 3 4 5
    kv.drainEvents();
    expect([kv.freeBlocks, kv.stats().usedBlocks]).toEqual([8, 0]);
    kv.addSequence(3n, 32);
    // 6 and 7 were free; then the tail of request 1, then its middle.
    expect(tableOf(kv, 3n)).toEqual([6, 7, 2, 1]);
    kv.freeSequence(3n);
    expect(run(kv, 4n, count(24, 100)).reusedTokens).toBe(23);
    expect(run(kv, 5n, count(24)).reusedTokens).toBe(8);
  });

  it('spares what was used again', () => {
    const kv = cache({ numBlocks: 8 });
    run(kv, 1n, count(17));
    run(kv, 2n, count(17, 100));
    run(kv, 3n, count(17)); // uses 1's blocks again
    kv.addSequence(4n, 48);
    kv.freeSequence(4n);
    expect(run(kv, 5n, count(17)).reusedTokens).toBe(16);
    expect(run(kv, 6n, count(17, 100)).reusedTokens).toBe(0);
  });

  it('never takes what is held, though cached blocks lie behind it', () => {
    const kv = cache({ numBlocks: 8 });
    run(kv, 1n, count(32));
    run(kv, 2n, count(10), { stays: true });
    expect(kv.freeBlocks).toBe(6);
    expect(kv.addSequence(3n, 49)).toBe(false);
    kv.checkIntegrity();
    expect(kv.addSequence(3n, 48)).toBe(true);
    kv.checkIntegrity();
    expect(kv.freeBlocks).toBe(0);
    expect(kv.growSequence(2n, 17)).toBe(false);
  });

  it('gives up its own copy of a block that another has stored meanwhile', () => {
    const kv = cache();
    for (const requestId of [1n, 2n]) kv.addSequence(requestId, 17, { tokens: count(17), salt: 0n });
    kv.store(1n, count(17), 17);
    expect(kv.freeBlocks).toBe(6);
    kv.store(2n, count(17), 17);
    expect(tableOf(kv, 2n).slice(0, 2)).toEqual(tableOf(kv, 1n).slice(0, 2));
    expect(kv.freeBlocks).toBe(8);
    kv.checkIntegrity();
    expect(kv.freeSequence(1n)).toBe(3);
    expect(kv.freeBlocks).toBe(9);
    kv.checkIntegrity();
  });

  it('credits a pause with the blocks that nobody else holds', () => {
    const kv = cache();
    run(kv, 1n, count(17), { stays: true });
    run(kv, 2n, count(17), { stays: true });
    const credit = kv.capacity().creditOfPauses!();
    expect([credit(2n), credit(1n), credit(9n)]).toEqual([1, 3, 0]);
    expect(kv.capacity().creditOfPauses!()(1n)).toBe(1);
  });
});

describe('retention', () => {
  const low: Retention = { ranges: [{ start: 0, priority: 10 }] };
  const high: Retention = { ranges: [{ start: 0, end: 8, priority: 90, durationMs: 1000 }] };

  it('evicts the lowest priority first, whatever was released first', () => {
    const kv = cache({ numBlocks: 8 });
    run(kv, 1n, count(17));
    run(kv, 2n, count(17, 100), { retention: low });
    kv.addSequence(3n, 48);
    kv.freeSequence(3n);
    expect(run(kv, 4n, count(17)).reusedTokens).toBe(16);
    expect(run(kv, 5n, count(17, 100)).reusedTokens).toBe(0);
  });

  it('keeps a range at a higher priority until its time is over', () => {
    for (const [nowMs, kept] of [
      [1999, 8],
      [2000, 0],
    ] as const) {
      const kv = cache({ numBlocks: 8 });
      kv.advanceClock(1000);
      run(kv, 1n, count(17), { retention: high });
      run(kv, 2n, count(17, 100));
      kv.advanceClock(nowMs);
      kv.checkIntegrity();
      kv.addSequence(3n, 7 * 8 - (kept === 0 ? 8 : 0));
      kv.checkIntegrity();
      kv.freeSequence(3n);
      expect(run(kv, 4n, count(17)).reusedTokens).toBe(kept);
    }
  });

  it('goes by the first token of a block, and tells generated blocks apart', () => {
    const kv = cache();
    const retention = { ranges: [{ start: 4, end: 9, priority: 80 }], generated: { priority: 5 } };
    kv.addSequence(1n, 12, { tokens: count(24), salt: 0n, retention });
    kv.growSequence(1n, 24);
    kv.store(1n, count(24), 24);
    const stored = kv.drainEvents().flatMap(({ data }) => (data.type === 'stored' ? data.blocks : []));
    expect(stored.map(({ priority }) => priority)).toEqual([35, 80, 5]);
  });

  it.each<[Retention, string]>([
    [{ ranges: [{ start: 0, priority: 101 }] }, 'A retention priority is 101'],
    [{ ranges: [{ start: 3, end: 3, priority: 1 }] }, 'A retention range is [3, 3)'],
    [{ generated: { priority: 3, durationMs: 0 } }, 'A retention duration is 0 ms'],
  ])('refuses %j', (retention, sentence) => {
    const kv = cache();
    expect(() => kv.addSequence(1n, 8, { tokens: count(8), salt: 0n, retention })).toThrow(sentence);
    expect(kv.hasSequence(1n)).toBe(false);
  });
});

describe('events and statistics', () => {
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
    });
  });
});
