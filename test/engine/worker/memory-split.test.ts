import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type MemoryNeeds, splitMemory } from '../../../engine/worker/memory-split.js';

const needs = (mostBytes: number, fixed = 0): MemoryNeeds => ({
  fixed: { packedWeights: fixed, storedWeights: 0, workspace: 0 },
  mostBytes,
});
const split = (bytes: number, list: MemoryNeeds[]) =>
  splitMemory({ bytes, from: 'a test' }, list).map((share) => share.bytes);

describe('the memory of several models', () => {
  it('is shared equally after what all take in any case', () => {
    expect(split(1000, [needs(1e6, 100), needs(1e6, 300)])).toEqual([300, 300]);
  });

  it('goes to the others where one can use less than its share', () => {
    expect(split(16, [needs(2), needs(40), needs(40)])).toEqual([2, 7, 7]);
    expect(split(30, [needs(5), needs(12), needs(40)])).toEqual([5, 12, 13]);
    expect(split(100, [needs(5), needs(12)])).toEqual([5, 12]);
  });

  it('is nothing where the models alone take all of it, and says where it comes from', () => {
    const shares = splitMemory({ bytes: 100, from: 'MemAvailable' }, [needs(50, 80), needs(50, 80)]);
    expect(shares.map((share) => share.bytes)).toEqual([0, 0]);
    expect(shares[0]!.from).toContain('100 bytes by MemAvailable, less 160 that 2 models take');
  });

  it('of a model alone is what it leaves', () => {
    const [share] = splitMemory({ bytes: 100, from: 'MemAvailable' }, [needs(200, 30)]);
    expect(share).toEqual({
      bytes: 70,
      from: '100 bytes by MemAvailable, less 30 that the model takes without its KV cache',
    });
  });

  it('is never shared beyond what there is, and no model gets less than one that can use as much', () => {
    const anyNeeds = fc
      .record({ most: fc.nat(1000), fixed: fc.nat(100) })
      .map(({ most, fixed }) => needs(most, fixed));
    fc.assert(
      fc.property(fc.nat(3000), fc.array(anyNeeds, { minLength: 1, maxLength: 6 }), (bytes, list) => {
        const shares = split(bytes, list);
        const fixed = list.reduce((sum, one) => sum + one.fixed.packedWeights, 0);
        const sum = shares.reduce((total, share) => total + share, 0);
        expect(sum).toBeLessThanOrEqual(Math.max(0, bytes - fixed));
        for (const [i, share] of shares.entries()) {
          expect(share).toBeLessThanOrEqual(list[i]!.mostBytes);
          // An engine that wants more than its share has as much as any other.
          if (share < list[i]!.mostBytes) expect(Math.max(...shares)).toBe(share);
        }
      }),
    );
  });
});
