import { describe, expect, it } from 'vitest';
import { cache, count, run, SIZE, tableOf } from '../support/reusing-cache.js';

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
          // The second reuses the tokens that it shares with the first's full blocks, except its own last token.
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

  it('shares nothing between adapters, whatever their salts', () => {
    const kv = cache({ numBlocks: 64 });
    run(kv, 1n, count(24), { loraId: 1n });
    const others = [{ loraId: 2n }, { loraId: 0n }, { loraId: 1n, salt: 1n }, { salt: 1n }, {}];
    for (const [i, other] of others.entries()) {
      expect(run(kv, BigInt(i + 2), count(24), other).reusedTokens).toBe(0);
    }
    expect(run(kv, 9n, count(24), { loraId: 1n }).reusedTokens).toBe(23);
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
