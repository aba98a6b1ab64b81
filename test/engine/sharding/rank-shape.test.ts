import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deal, dealColumns, dealHeads, RankPlanError } from '../../../engine/sharding/rank-shape.js';

describe('dealing', () => {
  test('shares follow one another, cover everything, and differ by one unit at most', () => {
    fc.assert(
      fc.property(
        fc.nat(5000),
        fc.integer({ min: 1, max: 64 }),
        fc.integer({ min: 1, max: 40 }),
        (total, ranks, unit) => {
          const shares = deal(total, ranks, unit);
          let first = 0;
          for (const share of shares) {
            expect(share.first).toBe(first);
            first += share.count;
          }
          expect(first).toBe(total);
          const units = shares.map(({ count }) => Math.ceil(count / unit));
          expect(Math.max(...units) - Math.min(...units)).toBeLessThanOrEqual(1);
        },
      ),
    );
  });

  test('columns are dealt in units of 32 where there are enough', () => {
    expect(dealColumns(1536, 2)).toEqual([
      { first: 0, count: 768 },
      { first: 768, count: 768 },
    ]);
    expect(dealColumns(100, 3).map(({ count }) => count)).toEqual([64, 32, 4]);
    expect(dealColumns(2, 3).map(({ count }) => count)).toEqual([1, 1, 0]);
  });

  test('heads are dealt with their KV heads, of which ranks beyond them hold copies', () => {
    const of = (ranks: number) =>
      dealHeads(9, 3, ranks).map(({ queries, keys }) => [
        queries.first,
        queries.count,
        keys.first,
        keys.count,
      ]);
    expect(of(2)).toEqual([
      [0, 6, 0, 2],
      [6, 3, 2, 1],
    ]);
    expect(of(4)).toEqual([
      [0, 2, 0, 1],
      [2, 1, 0, 1],
      [3, 3, 1, 1],
      [6, 3, 2, 1],
    ]);
    expect(() => of(10)).toThrow(RankPlanError);
  });

  test('each query lies beside the KV head that it attends to', () => {
    const shapes = fc.tuple(
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 64 }),
    );
    fc.assert(
      fc.property(shapes, ([kvHeads, group, wanted]) => {
        const numHeads = kvHeads * group;
        const ranks = Math.min(wanted, numHeads);
        let next = 0;
        for (const { queries, keys } of dealHeads(numHeads, kvHeads, ranks)) {
          expect(queries.first).toBe(next);
          next += queries.count;
          expect(queries.count % keys.count).toBe(0);
          for (let query = 0; query < queries.count; query++) {
            const own = keys.first + Math.floor(query / (queries.count / keys.count));
            expect(own).toBe(Math.floor((queries.first + query) / group));
          }
        }
        expect(next).toBe(numHeads);
      }),
    );
  });
});
