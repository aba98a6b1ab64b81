import { describe, expect, it } from 'vitest';
import { Random } from '../../tools/support/random.js';
import { cache, count, run, tableOf } from '../support/reusing-cache.js';

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

describe('blocks that end before it is said which span they hold', () => {
  // Two pictures of 20 tokens after 7 of text, whose first tokens are equal: the first block has that one alone.
  const text = count(7);
  const tokensOf = (from: number) => Int32Array.of(...text, 500, ...count(19, from), 1, 2, 3, 4, 5);
  const spans = [{ start: 7, end: 27 }];

  it('are shared with none but those of the same span', () => {
    const kv = cache({ numBlocks: 20 });
    run(kv, 1n, tokensOf(600), { spans });
    const other = tokensOf(700);
    expect(run(kv, 2n, other, { spans, stays: true }).reusedTokens).toBe(7);
    const own = tableOf(kv, 2n);
    const shared = { tokens: tokensOf(600), salt: 0n };
    expect(own).not.toContain(kv.cachedBlocks(shared, 8)[0]);
    // Nor are its blocks kept below it.
    expect([...kv.cachedBlocks({ tokens: other, salt: 0n }, other.length)]).toHaveLength(1);
    kv.freeSequence(2n);
    expect(run(kv, 3n, tokensOf(600), { spans }).reusedTokens).toBe(31);
  });

  it('are kept with what says it alone, and give way to it where they are left without', () => {
    const kv = cache({ numBlocks: 20 });
    const whole = tokensOf(600);
    run(kv, 1n, whole.slice(0, 15), { spans });
    expect(kv.cachedBlocks({ tokens: whole, salt: 0n }, 32)).toHaveLength(0);
    // One that knows nothing of spans leaves the first block alone.
    run(kv, 2n, whole.slice(0, 9));
    const [alone] = kv.cachedBlocks({ tokens: whole, salt: 0n }, 32);
    expect(alone).toBeDefined();
    run(kv, 3n, whole, { spans, stays: true });
    const found = [...kv.cachedBlocks({ tokens: whole, salt: 0n }, 32)];
    expect(found).toEqual(tableOf(kv, 3n).slice(0, 4));
    kv.freeSequence(3n);
    expect(run(kv, 4n, whole, { spans }).reusedTokens).toBe(31);
  });
});

describe('spans that are found whole or not at all', () => {
  it('are never cut by what is found, which is otherwise the same', () => {
    const random = new Random(7);
    let cuts = 0;
    for (let n = 0; n < 300; n++) {
      const tokens = count(60);
      const other = tokens.slice();
      other.fill(900, random.below(60));
      const spans: { start: number; end: number }[] = [];
      for (let start = random.below(12); start < 60; ) {
        const end = Math.min(60, start + 1 + random.below(25));
        spans.push({ start, end });
        start = end + random.below(12);
      }
      const found = (given: typeof spans) => {
        const kv = cache({ numBlocks: 20 });
        run(kv, 1n, tokens);
        return run(kv, 2n, other, { spans: given });
      };
      const all = found([]).reusedTokens;
      const cut = spans.find(({ start, end }) => start < all && all < end);
      expect(found(spans).reusedTokens).toBe(cut?.start ?? all);
      if (cut !== undefined) cuts++;
    }
    expect(cuts).toBeGreaterThan(50);
  });
});
