import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  blocksOf,
  blocksShown,
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

describe('the blocks that the map shows', () => {
  it('are those in use with room to grow, and the whole pool where much of it is', () => {
    const used = (end: number) => [end, -2, 100_000 - end, -1];
    expect(blocksShown(used(0), 100_000, 0)).toBe(64);
    expect(blocksShown(used(100), 100_000, 0)).toBe(128);
    expect(blocksShown(used(60_000), 100_000, 0)).toBe(100_000);
    expect(blocksShown([10, 1], 10, 0)).toBe(10);
  });

  it('never hide one in use, and stay as they are while little changes', () => {
    fc.assert(
      fc.property(runs, fc.integer({ min: 0, max: 4000 }), (pairs, before) => {
        const free = 3000;
        const flat = [...pairs.flat(), free, -1];
        const owners = pairs.flatMap(([length, owner]) => Array<number>(length).fill(owner));
        const count = owners.length + free;
        const shown = blocksShown(flat, count, before);
        expect(shown).toBeLessThanOrEqual(count);
        expect(shown).toBeGreaterThanOrEqual(owners.findLastIndex((owner) => owner !== -1) + 1);
        expect(blocksShown(flat, count, shown)).toBe(shown);
        const layout = layoutBlocks(shown, 400, 40);
        expect(fillCells(flat, layout, count).totals.reduce((sum, kind) => sum + kind)).toBe(count);
      }),
    );
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
    expect(fillCells([3, -1, 9, 2], layout, 5).totals).toEqual([3, 2, 0, 0]);
    expect(fillCells([2, -2], layout).totals).toEqual([0, 0, 2, 0]);
  });
});
