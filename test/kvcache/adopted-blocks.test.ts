import fc from 'fast-check';
import { expect, it } from 'vitest';
import { KvCacheManager, type KvCacheOptions } from '../../kvcache/kv-cache-manager.js';

const SIZE = 4;

/** Primary blocks 0 to 5, secondary ones 6 and 7. */
function cache(options: Partial<KvCacheOptions> = {}): KvCacheManager {
  return new KvCacheManager({
    numBlocks: 6,
    numSecondaryBlocks: 2,
    tokensPerBlock: SIZE,
    maxSeqLen: 24,
    enableBlockReuse: true,
    maxEvents: 100,
    ...options,
  });
}

const count = (length: number, from = 1) => Int32Array.from({ length }, (_, index) => from + index);
const of = (tokens: Int32Array, salt = 0n) => ({ tokens, salt });

function run(kv: KvCacheManager, id: bigint, tokens: Int32Array): number {
  expect(kv.addSequence(id, tokens.length, of(tokens))).toBe(true);
  const { reusedTokens } = kv.reuseOf(id);
  kv.store(id, tokens, tokens.length);
  kv.freeSequence(id);
  kv.checkIntegrity();
  return reusedTokens;
}

it('are found by the next prompt, and by nobody of another salt', () => {
  const kv = cache();
  const tokens = count(12);
  const { first, blocks } = kv.adoptBlocks(of(tokens), 0, 2);
  kv.checkIntegrity();
  expect([first, blocks.length]).toEqual([0, 2]);
  expect(kv.cachedBlocks(of(tokens), 12)).toEqual(blocks);
  expect(kv.cachedBlocks(of(tokens, 1n), 12)).toHaveLength(0);
  // Nothing zeroes them any more.
  expect(kv.drainNewBlocks(new Int32Array(6))).toBe(0);
  expect(run(kv, 1n, tokens)).toBe(8);
});

it('are a tail of what is offered where the beginning is known, and nothing where it is missing', () => {
  const kv = cache();
  run(kv, 1n, count(8));
  expect(kv.adoptBlocks(of(count(20)), 1, 3)).toMatchObject({ first: 2, blocks: { length: 2 } });
  expect(kv.adoptBlocks(of(count(20)), 0, 4).blocks).toHaveLength(0);
  expect(kv.adoptBlocks(of(count(24, 50)), 1, 3).blocks).toHaveLength(0);
  // The last block is not full.
  expect(kv.adoptBlocks(of(count(18)), 4, 1).blocks).toHaveLength(0);
  kv.checkIntegrity();
});

it('are free again where they are taken back, and leave those in front of them', () => {
  const kv = cache();
  run(kv, 1n, count(8));
  const free = kv.freeBlocks;
  const adopted = kv.adoptBlocks(of(count(20)), 0, 5);
  expect(adopted).toMatchObject({ first: 2, blocks: { length: 3 } });
  kv.dropAdopted(of(count(20)), adopted);
  kv.checkIntegrity();
  expect(kv.freeBlocks).toBe(free);
  expect(kv.cachedBlocks(of(count(20)), 20)).toHaveLength(2);
  expect(run(kv, 2n, count(20))).toBe(8);
  const none = kv.adoptBlocks(of(count(20)), 0, 5);
  kv.dropAdopted(of(count(20)), none);
  expect(kv.cachedBlocks(of(count(20)), 20)).toHaveLength(5);
});

it('evict what nobody holds, swap it out first, and never take what is held', () => {
  const kv = cache();
  run(kv, 1n, count(8, 100));
  expect(kv.addSequence(2n, 12, of(count(12, 200)))).toBe(true);
  kv.drainCopies();
  const { blocks } = kv.adoptBlocks(of(count(24)), 0, 5);
  kv.checkIntegrity();
  expect(blocks).toHaveLength(3);
  // Two blocks of the first prompt go to the secondary pool before they are written over.
  const { source, target } = kv.drainCopies()!;
  expect(Array.from(source).every((block) => blocks.includes(block))).toBe(true);
  expect(Array.from(target).sort()).toEqual([6, 7]);
  expect(kv.blocksHeld(2n)).toBe(3);
});

it('are told as stored, behind the block in front of them', () => {
  const kv = cache();
  run(kv, 1n, count(4));
  const [stored] = kv.drainEvents().flatMap(({ data }) => (data.type === 'stored' ? [data] : []));
  kv.adoptBlocks(of(count(12)), 0, 3);
  const events = kv.drainEvents().map(({ data }) => data);
  expect(events).toMatchObject([
    {
      type: 'stored',
      parentHash: stored!.blocks[0]!.blockHash,
      blocks: [{ tokens: [5, 6, 7, 8] }, { tokens: [9, 10, 11, 12] }],
    },
  ]);
});

it('are none without block reuse', () => {
  expect(
    cache({ enableBlockReuse: false, numSecondaryBlocks: 0 }).adoptBlocks(of(count(8)), 0, 2).blocks,
  ).toHaveLength(0);
});

interface Step {
  kind: 'run' | 'adopt' | 'hold' | 'free';
  from: number;
  length: number;
  first: number;
  number: number;
}

it('leave the cache whole in every history', () => {
  const swappedOut: Step[] = [
    { kind: 'run', from: 2, length: 16, first: 0, number: 0 },
    { kind: 'run', from: 0, length: 12, first: 0, number: 0 },
    { kind: 'hold', from: 0, length: 1, first: 0, number: 0 },
    { kind: 'adopt', from: 2, length: 16, first: 0, number: 4 },
  ];
  const step: fc.Arbitrary<Step> = fc.record({
    kind: fc.constantFrom('run', 'adopt', 'hold', 'free'),
    from: fc.integer({ min: 0, max: 3 }),
    length: fc.integer({ min: 1, max: 24 }),
    first: fc.integer({ min: 0, max: 3 }),
    number: fc.integer({ min: 0, max: 6 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const kv = cache();
      let id = 1n;
      const held: bigint[] = [];
      for (const { kind, from, length, first, number } of steps) {
        const tokens = count(length, 100 * from);
        if (kind === 'free') for (const one of held.splice(0, 1)) kv.freeSequence(one);
        else if (kind === 'adopt') {
          const before = kv.cachedBlocks(of(tokens), length).length;
          const adopted = kv.adoptBlocks(of(tokens), first, number);
          const after = kv.cachedBlocks(of(tokens), length);
          if (adopted.blocks.length > 0) {
            expect(adopted.first).toBe(before);
            expect(after.slice(before)).toEqual(adopted.blocks);
          } else expect(after.length).toBeLessThanOrEqual(Math.max(before, first + number));
        } else if (kv.addSequence(id, length, of(tokens))) {
          if (kind === 'run') {
            kv.store(id, tokens, length);
            kv.freeSequence(id);
          } else held.push(id);
          id++;
        }
        kv.checkIntegrity();
        kv.drainCopies();
      }
    }),
    // The last block of the prompt is swapped out, and so is the one in front of it, which comes back first.
    { examples: [[swappedOut]] },
  );
});
