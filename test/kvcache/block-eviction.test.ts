import { describe, expect, it } from 'vitest';
import type { Retention } from '../../kvcache/retention.js';
import { cache, count, run, tableOf } from '../support/reusing-cache.js';

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

  it('forgets the time of a block that was evicted', () => {
    const kv = cache({ numBlocks: 8 });
    kv.advanceClock(1000);
    run(kv, 1n, count(17), { retention: high });
    expect(kv.addSequence(2n, 64)).toBe(true);
    kv.drainEvents();
    kv.advanceClock(2000);
    expect(kv.drainEvents()).toEqual([]);
    kv.checkIntegrity();
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
