import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KvCacheManager } from '../../kvcache/kv-cache-manager.js';
import { draws } from '../support/scale.js';

const newManager = (numBlocks: number, enableBlockReuse = false) =>
  new KvCacheManager({ numBlocks, tokensPerBlock: 4, maxSeqLen: 32, enableBlockReuse });

describe('a sequence with beams', () => {
  it('shares the full blocks of its prompt; each beam has all others for itself', () => {
    const manager = newManager(16);
    expect(manager.addSequence(1n, 10, undefined, 3)).toBe(true);
    expect(manager.blocksHeld(1n)).toBe(2 + 3);
    expect(manager.growSequence(1n, 12)).toBe(true);
    expect(manager.blocksHeld(1n)).toBe(2 + 3);
    expect(manager.growSequence(1n, 13)).toBe(true);
    expect([manager.blocksHeld(1n), manager.freeBlocks]).toEqual([2 + 6, 8]);
    manager.checkIntegrity();
    manager.trimSequence(1n, 11);
    expect(manager.blocksHeld(1n)).toBe(2 + 3);
    manager.checkIntegrity();
    expect(manager.freeSequence(1n)).toBe(5);
    expect(manager.freeBlocks).toBe(16);
  });

  it('takes the blocks of all beams, or none', () => {
    const manager = newManager(8);
    expect(manager.addSequence(1n, 4, undefined, 3)).toBe(true);
    expect(manager.addSequence(2n, 14, undefined, 3)).toBe(true);
    expect(manager.freeBlocks).toBe(1);
    expect(manager.canGrowSequence(1n, 5)).toBe(false);
    expect(manager.growSequence(1n, 5)).toBe(false);
    expect([manager.blocksHeld(1n), manager.freeBlocks]).toEqual([1, 1]);
    expect(manager.addSequence(3n, 1, undefined, 2)).toBe(false);
    expect(manager.hasSequence(3n)).toBe(false);
    manager.checkIntegrity();
  });

  it('announces the blocks of every beam as new, each once', () => {
    const manager = newManager(16);
    manager.addSequence(1n, 6, undefined, 3);
    const blocks = new Int32Array(16);
    const count = manager.drainNewBlocks(blocks);
    expect(count).toBe(4);
    expect(new Set(blocks.subarray(0, count)).size).toBe(4);
  });

  it('keeps its prompt for others, and nothing that its beams have generated', () => {
    const manager = newManager(16, true);
    const tokens = Int32Array.from({ length: 12 }, (_, place) => place);
    const shared = { tokens, salt: 0n };
    manager.addSequence(1n, 6, shared, 2);
    manager.growSequence(1n, 12);
    manager.store(1n, tokens, 12);
    manager.freeSequence(1n);
    manager.addSequence(2n, 12, shared);
    expect(manager.reuseOf(2n)).toMatchObject({ reusedTokens: 4, reusedBlocks: 1 });
    manager.checkIntegrity();
  });

  const tablesOf = (manager: KvCacheManager, width: number) =>
    Array.from({ length: width }, (_, beam) => {
      const table = new Int32Array(8);
      return Array.from(table.subarray(0, manager.writeBlockTable(1n, table, 0, 8, beam)));
    });

  it('goes on from the beams that are the best, with a copy of a last block that is not full', () => {
    const manager = newManager(16);
    manager.addSequence(1n, 10, undefined, 3);
    manager.growSequence(1n, 13);
    const [first, second, third] = tablesOf(manager, 3) as [number[], number[], number[]];
    manager.forkSequences(1n, [1, 1, 0]);
    // The second that continues beam 1 has its full blocks, and what was the last block of beam 2.
    const copied = [...second.slice(0, 3), third[3]!];
    expect(tablesOf(manager, 3)).toEqual([second, copied, first]);
    expect(manager.blocksHeld(1n)).toBe(7);
    manager.checkIntegrity();
    expect(manager.freeSequence(1n)).toBe(7);
    expect(manager.freeBlocks).toBe(16);
  });

  it('is told which sequences it may go on from', () => {
    const manager = newManager(16);
    manager.addSequence(1n, 10, undefined, 3);
    for (const parents of [[], [0, 1, 2, 0], [0, 3], [-1], [0.5]])
      expect(() => manager.forkSequences(1n, parents), `${parents}`).toThrow(
        `Request 1: its 3 sequences are to go on from [${parents.join(', ')}]; 1 to 3 of them, each from 0 to 2, can be.`,
      );
    expect(manager.blocksHeld(1n)).toBe(2 + 3);
    manager.forkSequences(1n, [2]);
    expect(manager.blocksHeld(1n)).toBe(3);
    manager.checkIntegrity();
  });

  it('gives back all own blocks of a beam from which none goes on, if the last ones are full', () => {
    const manager = newManager(16);
    manager.addSequence(1n, 10, undefined, 3);
    manager.growSequence(1n, 12);
    const [, second] = tablesOf(manager, 3) as [number[], number[], number[]];
    manager.forkSequences(1n, [1, 1, 1]);
    expect(tablesOf(manager, 3)).toEqual([second, second, second]);
    expect([manager.blocksHeld(1n), manager.freeBlocks]).toEqual([3, 13]);
    manager.checkIntegrity();
    expect(manager.freeSequence(1n)).toBe(3);
    expect(manager.freeBlocks).toBe(16);
  });

  it('loses no block in any history', () => {
    const action = fc.record({
      id: fc.bigInt({ min: 0n, max: 4n }),
      what: fc.constantFrom('add', 'grow', 'grow', 'fork', 'store', 'free'),
      length: fc.integer({ min: 1, max: 32 }),
      beamWidth: fc.constantFrom(1, 2, 3),
    });
    const tokens = Int32Array.from({ length: 32 }, (_, place) => place % 5);
    const property = fc.property(fc.array(action, { maxLength: 60 }), fc.boolean(), (actions, reuse) => {
      const manager = newManager(24, reuse);
      const widths = new Map<bigint, number>();
      for (const { id, what, length, beamWidth } of actions) {
        const has = manager.hasSequence(id);
        const held = manager.freeBlocks;
        if (what === 'add' && !has) {
          widths.set(id, beamWidth);
          manager.addSequence(id, length, { tokens, salt: 0n }, beamWidth);
        } else if (!has) continue;
        else if (what === 'grow' && !manager.growSequence(id, length)) expect(manager.freeBlocks).toBe(held);
        else if (what === 'fork') {
          const width = widths.get(id)!;
          manager.forkSequences(
            id,
            Array.from({ length: width }, (_, beam) => (beam * length) % width),
          );
          expect(manager.freeBlocks).toBeGreaterThanOrEqual(held);
        } else if (what === 'store') manager.store(id, tokens, manager.sequenceLength(id));
        else if (what === 'free') manager.freeSequence(id);
        manager.checkIntegrity();
      }
      for (let id = 0n; id <= 4n; id += 1n) manager.freeSequence(id);
      manager.checkIntegrity();
      expect(manager.freeBlocks).toBe(24);
    });
    fc.assert(property, { numRuns: draws(80) });
  });
});
