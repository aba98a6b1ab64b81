import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  blocksOf,
  CACHED,
  FREE,
  fillCells,
  kindOf,
  layoutBlocks,
  NUM_KINDS,
  SHARED,
  USED,
} from '../../../../../src/server/dashboard/page/formation/block-map.js';

const sizes = fc.record({
  count: fc.integer({ min: 1, max: 200_000 }),
  width: fc.integer({ min: 40, max: 1600 }),
  height: fc.integer({ min: 20, max: 300 }),
});
const runs = fc.array(fc.tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: -3, max: 5 })), {
  minLength: 1,
  maxLength: 40,
});

describe('the layout of blocks', () => {
  it('has room for all blocks within its box, and cells of several only where the smallest are too large', () => {
    fc.assert(
      fc.property(sizes, ({ count, width, height }) => {
        const { columns, rows, size, gap, blocksPerCell, cells } = layoutBlocks(count, width, height);
        expect(cells * blocksPerCell).toBeGreaterThanOrEqual(count);
        expect((cells - 1) * blocksPerCell).toBeLessThan(count);
        expect(columns * rows).toBeGreaterThanOrEqual(cells);
        expect(columns * (size + gap)).toBeLessThanOrEqual(width);
        expect(rows * (size + gap)).toBeLessThanOrEqual(height);
        expect(size).toBeGreaterThanOrEqual(4);
        if (blocksPerCell > 1) expect(size + gap).toBe(5);
      }),
    );
  });

  it('is as large as it can be, and never larger than is beautiful', () => {
    expect(layoutBlocks(10, 1000, 120)).toMatchObject({ size: 14, gap: 2, blocksPerCell: 1, rows: 1 });
    expect(layoutBlocks(1000, 1000, 120)).toMatchObject({ blocksPerCell: 1 });
    expect(layoutBlocks(100_000, 1000, 120).blocksPerCell).toBe(Math.ceil(100_000 / (200 * 24)));
    expect(layoutBlocks(0, 1000, 120)).toMatchObject({ cells: 0, rows: 1 });
  });
});

describe('the cells of the map', () => {
  it('hold every block once, as what it is and whose', () => {
    fc.assert(
      fc.property(runs, fc.integer({ min: 40, max: 400 }), (pairs, width) => {
        const flat = pairs.flat();
        const owners = pairs.flatMap(([length, owner]) => Array<number>(length).fill(owner));
        const layout = layoutBlocks(owners.length, width, 40);
        const { counts, owners: mostly, totals } = fillCells(flat, layout);
        const kinds = [FREE, USED, CACHED, SHARED];
        expect(totals).toEqual(kinds.map((kind) => owners.filter((owner) => kindOf(owner) === kind).length));
        for (let cell = 0; cell < layout.cells; cell++) {
          const own = owners.slice(cell * layout.blocksPerCell, (cell + 1) * layout.blocksPerCell);
          const inCell = kinds.map((kind) => own.filter((owner) => kindOf(owner) === kind).length);
          expect(Array.from(counts.subarray(cell * NUM_KINDS, (cell + 1) * NUM_KINDS))).toEqual(inCell);
          const times = (owner: number) => own.filter((one) => one === owner).length;
          const used = own.filter((owner) => owner >= 0);
          const most = used.length === 0 ? -1 : Math.max(...used.map(times));
          if (most < 0) expect(mostly[cell]).toBe(-1);
          else expect(times(mostly[cell]!)).toBe(most);
        }
        for (const owner of new Set(owners)) {
          const held = blocksOf(owner, flat, layout);
          expect(held.reduce((sum, count) => sum + count, 0)).toBe(
            owners.filter((one) => one === owner).length,
          );
        }
      }),
    );
  });

  it('a feed that tells of more blocks than the pool has is cut, not followed', () => {
    const layout = layoutBlocks(4, 100, 40);
    expect(fillCells([3, -1, 9, 2], layout).totals).toEqual([3, 1, 0, 0]);
    expect(fillCells([2, -2], layout).totals).toEqual([0, 0, 2, 0]);
  });
});
