import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { draws } from '../support/scale.js';

const cache = () => new KvCacheManager({ numBlocks: 6, tokensPerBlock: 8, maxSeqLen: 48 });

function tableOf(kv: KvCacheManager, requestId: bigint): number[] {
  const table = new Int32Array(8).fill(-1);
  return Array.from(table.subarray(0, kv.writeBlockTable(requestId, table, 0, 8)));
}

describe('construction', () => {
  it.each([
    [
      { numBlocks: 6, tokensPerBlock: 0, maxSeqLen: 8 },
      'tokensPerBlock is 0; a whole number of at least 1 is expected.',
    ],
    [
      { numBlocks: 6, tokensPerBlock: 2.5, maxSeqLen: 8 },
      'tokensPerBlock is 2.5; a whole number of at least 1 is expected.',
    ],
    [{ numBlocks: 0, maxSeqLen: 8 }, 'numBlocks is 0; a whole number of at least 1 is expected.'],
    [{ numBlocks: 6, maxSeqLen: 2.5 }, 'maxSeqLen is 2.5; a whole number of at least 1 is expected.'],
    [
      { numBlocks: 5, tokensPerBlock: 8, maxSeqLen: 41 },
      'The KV cache has 5 blocks of 8 tokens, but one sequence of maxSeqLen = 41 needs 6. ' +
        'Give it more memory or lower maxSeqLen.',
    ],
    [
      { numBlocks: 2 ** 27, tokensPerBlock: 16, maxSeqLen: 41 },
      '134217728 blocks of 16 tokens are more than 2147483647 slots, the most that a 32-bit slot number can name.',
    ],
  ])('refuses %j', (options, sentence) => {
    expect(() => new KvCacheManager(options)).toThrow(new RangeError(sentence));
  });

  it('takes 32 tokens per block when not told, and exactly one maximal sequence', () => {
    const kv = new KvCacheManager({ numBlocks: 3, maxSeqLen: 96 });
    expect(kv.capacity()).toEqual({
      freeBlocks: 3,
      tokensPerBlock: 32,
      maxAttentionWindow: Number.POSITIVE_INFINITY,
    });
    expect(kv.maxBlocksPerSequence).toBe(3);
    expect(kv.addSequence(1n, 96)).toBe(true);
    expect(kv.freeBlocks).toBe(0);
  });
});

describe('sequences', () => {
  it('give back the blocks of a rejected draft, and no others', () => {
    const kv = cache();
    kv.addSequence(1n, 8);
    kv.growSequence(1n, 9 + 10);
    expect([kv.blocksHeld(1n), kv.freeBlocks]).toEqual([3, 3]);
    kv.trimSequence(1n, 9);
    expect([kv.blocksHeld(1n), kv.freeBlocks, kv.sequenceLength(1n)]).toEqual([2, 4, 9]);
    kv.checkIntegrity();
    kv.trimSequence(1n, 9);
    expect(kv.blocksHeld(1n)).toBe(2);
    expect(() => kv.trimSequence(1n, 10)).toThrow('its table is to keep 10 of 9 tokens; 1 to 9 can be.');
    expect(() => kv.trimSequence(1n, 0)).toThrow('its table is to keep 0 of 9 tokens');
    expect(() => kv.trimSequence(2n, 1)).toThrow('Request 2 has no sequence');
  });

  it('take the blocks of the whole prompt, and one more whenever a token opens it', () => {
    const kv = cache();
    expect(kv.addSequence(7n, 15)).toBe(true);
    expect([kv.blocksHeld(7n), kv.freeBlocks, kv.sequenceLength(7n)]).toEqual([2, 4, 15]);
    expect(kv.growSequence(7n, 16)).toBe(true);
    expect(kv.blocksHeld(7n)).toBe(2);
    expect(kv.growSequence(7n, 17)).toBe(true);
    expect([kv.blocksHeld(7n), kv.freeBlocks, kv.sequenceLength(7n)]).toEqual([3, 3, 17]);
    kv.checkIntegrity();
    expect(kv.freeSequence(7n)).toBe(3);
    expect([kv.blocksHeld(7n), kv.freeBlocks, kv.hasSequence(7n)]).toEqual([0, 6, false]);
    kv.checkIntegrity();
  });

  it('get all or nothing where there is no room', () => {
    const kv = cache();
    kv.addSequence(1n, 25);
    expect(kv.canAddSequence(16)).toBe(true);
    expect(kv.canAddSequence(17)).toBe(false);
    expect(kv.addSequence(2n, 17)).toBe(false);
    expect([kv.hasSequence(2n), kv.freeBlocks]).toEqual([false, 2]);
    expect(kv.addSequence(2n, 16)).toBe(true);
    expect(kv.canGrowSequence(1n, 32)).toBe(true);
    expect(kv.canGrowSequence(1n, 33)).toBe(false);
    expect(kv.growSequence(1n, 33)).toBe(false);
    expect([kv.blocksHeld(1n), kv.sequenceLength(1n)]).toEqual([4, 25]);
    kv.checkIntegrity();
  });

  it('hand out first the block that was released last, the head of a sequence', () => {
    const kv = cache();
    kv.addSequence(1n, 24);
    const held = tableOf(kv, 1n);
    expect(held).toEqual([0, 1, 2]);
    kv.freeSequence(1n);
    kv.addSequence(2n, 32);
    expect(tableOf(kv, 2n)).toEqual([0, 1, 2, 3]);
  });

  it('refuse what can only be a mistake of the caller', () => {
    const kv = cache();
    kv.addSequence(1n, 8);
    expect(() => kv.addSequence(1n, 8)).toThrow('Request 1 already has a sequence in the KV cache.');
    expect(() => kv.growSequence(2n, 8)).toThrow('Request 2 has no sequence in the KV cache.');
    expect(() => kv.growSequence(1n, 49)).toThrow(
      'Request 1: a sequence of 49 tokens is asked for; 1 to maxSeqLen = 48 can be.',
    );
    expect(() => kv.addSequence(3n, 0)).toThrow('Request 3: a sequence of 0 tokens is asked for');
    expect(kv.freeSequence(3n)).toBe(0);
    kv.checkIntegrity();
  });

  it('never shrink by growing', () => {
    const kv = cache();
    kv.addSequence(1n, 20);
    expect(kv.growSequence(1n, 3)).toBe(true);
    expect([kv.sequenceLength(1n), kv.blocksHeld(1n)]).toEqual([20, 3]);
    kv.checkIntegrity();
  });
});

describe('slots and tables', () => {
  it('names block * tokensPerBlock + offset for a range that crosses borders', () => {
    const kv = cache();
    kv.addSequence(1n, 8);
    kv.addSequence(2n, 8);
    kv.growSequence(1n, 24);
    expect(tableOf(kv, 1n)).toEqual([0, 2, 3]);
    const slots = new Int32Array(14).fill(-1);
    kv.writeSlots(1n, 6, 18, slots, 1);
    expect(Array.from(slots)).toEqual([-1, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, -1]);
    kv.writeSlots(1n, 8, 8, slots, 14);
    expect(slots[13]).toBe(-1);
  });

  it('refuses positions and arrays that do not cover the range', () => {
    const kv = cache();
    kv.addSequence(1n, 10);
    const slots = new Int32Array(4);
    expect(() => kv.writeSlots(1n, 8, 11, slots, 0)).toThrow(
      'Request 1: slots of positions [8, 11) are asked for; its table covers 10.',
    );
    expect(() => kv.writeSlots(1n, 0, 4, slots, 1)).toThrow(
      'Request 1: 4 slots from index 1 do not fit into an array of 4.',
    );
  });

  it('writes a table between its neighbours and clears the rest of its entries', () => {
    const kv = cache();
    kv.addSequence(1n, 8);
    kv.addSequence(2n, 24);
    const tables = new Int32Array(10).fill(-1);
    expect(kv.writeBlockTable(2n, tables, 4, 4)).toBe(3);
    expect(Array.from(tables)).toEqual([-1, -1, -1, -1, 1, 2, 3, 0, -1, -1]);
    expect(() => kv.writeBlockTable(2n, tables, 0, 2)).toThrow(
      'Request 2: a table of 3 blocks does not fit into 2 entries from index 0 of an array of 10.',
    );
    expect(() => kv.writeBlockTable(2n, tables, 7, 4)).toThrow('from index 7 of an array of 10');
  });
});

describe('new blocks and statistics', () => {
  it('lists what was handed out since the last drain, each block once', () => {
    const kv = cache();
    const drained = new Int32Array(6);
    kv.addSequence(1n, 16);
    kv.freeSequence(1n);
    kv.addSequence(2n, 20);
    expect(kv.drainNewBlocks(drained)).toBe(3);
    expect(Array.from(drained.subarray(0, 3)).sort()).toEqual(tableOf(kv, 2n).sort());
    expect(kv.drainNewBlocks(drained)).toBe(0);
    kv.growSequence(2n, 25);
    expect(kv.drainNewBlocks(drained)).toBe(1);
    expect(drained[0]).toBe(tableOf(kv, 2n)[3]);
    kv.addSequence(3n, 16);
    expect(() => kv.drainNewBlocks(new Int32Array(1))).toThrow(
      '2 new KV cache blocks do not fit into an array of 1.',
    );
    expect(kv.drainNewBlocks(drained)).toBe(2);
  });

  it('lists a block with the step that first writes to it', () => {
    const kv = cache();
    const drained = new Int32Array(6);
    const written = (slots: number[]) =>
      [...drained.subarray(0, kv.drainWrittenBlocks(Int32Array.from(slots), drained))].sort();
    kv.addSequence(1n, 24);
    const [first, second, third] = tableOf(kv, 1n) as [number, number, number];
    const slotsOf = (block: number) => Array.from({ length: 8 }, (_, i) => 8 * block + i);
    expect(written([...slotsOf(first), 8 * second])).toEqual([first, second].sort());
    expect(written(slotsOf(second).slice(1))).toEqual([]);
    // Given back before anything was written, and handed out again: still new, and once. There is nothing
    // after the pool.
    kv.freeSequence(1n);
    kv.addSequence(2n, 24);
    expect(tableOf(kv, 2n)).toContain(third);
    expect(written([...slotsOf(third), 8 * 1000])).toEqual([third]);
    expect(written([...slotsOf(first), ...slotsOf(second), ...slotsOf(third)])).toEqual(
      [first, second].sort(),
    );
    expect(kv.drainNewBlocks(drained)).toBe(0);
  });

  it('lists a block again when it changes hands after a drain', () => {
    const kv = cache();
    const drained = new Int32Array(6);
    kv.addSequence(1n, 8);
    expect([kv.drainNewBlocks(drained), drained[0]]).toEqual([1, 0]);
    kv.freeSequence(1n);
    kv.addSequence(2n, 8);
    expect(tableOf(kv, 2n)).toEqual([0]);
    expect([kv.drainNewBlocks(drained), drained[0]]).toEqual([1, 0]);
  });

  it('counts blocks now and since the start', () => {
    const kv = cache();
    kv.addSequence(1n, 16);
    kv.growSequence(1n, 17);
    kv.freeSequence(1n);
    kv.addSequence(2n, 8);
    expect(kv.stats()).toEqual({
      maxBlocks: 6,
      freeBlocks: 5,
      usedBlocks: 1,
      tokensPerBlock: 8,
      allocTotalBlocks: 4,
      allocNewBlocks: 4,
      reusedBlocks: 0,
      missedBlocks: 0,
      cacheHitRate: 0,
      secondaryMaxBlocks: 0,
      secondaryUsedBlocks: 0,
      swappedOutBlocks: 0,
      swappedInBlocks: 0,
      states: null,
      disk: null,
    });
  });
});

describe('random operations', () => {
  const operation = fc.record({
    kind: fc.constantFrom('add', 'grow', 'grow', 'grow', 'free', 'drain'),
    requestId: fc.bigInt({ min: 0n, max: 5n }),
    length: fc.integer({ min: 1, max: 64 }),
  });

  it('agree with a count by hand, and no two sequences ever share a slot', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 80 }), (operations) => {
        const kv = new KvCacheManager({ numBlocks: 12, tokensPerBlock: 8, maxSeqLen: 64 });
        const lengths = new Map<bigint, number>();
        const blocksOf = (length: number) => Math.ceil(length / 8);
        const free = () => 12 - [...lengths.values()].reduce((sum, length) => sum + blocksOf(length), 0);
        for (const { kind, requestId, length } of operations) {
          const before = lengths.get(requestId);
          if (kind === 'add' && before === undefined) {
            const fits = blocksOf(length) <= free();
            expect(kv.addSequence(requestId, length)).toBe(fits);
            if (fits) lengths.set(requestId, length);
          } else if (kind === 'grow' && before !== undefined) {
            const longer = Math.min(64, before + (length % 10));
            const fits = blocksOf(longer) - blocksOf(before) <= free();
            expect(kv.growSequence(requestId, longer)).toBe(fits);
            if (fits) lengths.set(requestId, longer);
          } else if (kind === 'free') {
            expect(kv.freeSequence(requestId)).toBe(blocksOf(before ?? 0));
            lengths.delete(requestId);
          } else if (kind === 'drain') {
            kv.drainNewBlocks(new Int32Array(12));
          }
          kv.checkIntegrity();
          expect(kv.freeBlocks).toBe(free());
        }
        const slots = [...lengths].flatMap(([requestId, length]) => {
          const own = new Int32Array(length);
          kv.writeSlots(requestId, 0, length, own, 0);
          return Array.from(own);
        });
        expect(new Set(slots).size).toBe(slots.length);
        expect(slots.every((slot) => slot >= 0 && slot < 12 * 8)).toBe(true);
      }),
      { numRuns: draws(133) },
    );
  });
});
