import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AdapterCache } from '../../../engine/peft/adapter-cache.js';
import { PagePool, pagesFor } from '../../../engine/peft/page-pool.js';
import { draws } from '../../support/scale.js';
import { SlowCache } from './slow-caches.js';

describe('pages', () => {
  it.each([
    [[], 0],
    [[3, 2, 5, 3], 2],
    [[8], 1],
    [[8, 1], 2],
    [[5, 5, 5], 3],
    [[1, 1, 1, 1, 1, 1, 1, 1], 1],
  ])('of 8 rows for module-layers of %j rows: %i', (rows, pages) => {
    expect(pagesFor(rows, 8)).toBe(pages);
  });

  it('have room for each module-layer', () => {
    expect(() => pagesFor([9], 8)).toThrow('A module-layer of 9 rows fits into no page; pages have 8.');
  });

  it('are taken and given back, never more than there are', () => {
    const pool = new PagePool(3);
    pool.take(2);
    expect(() => pool.take(2)).toThrow('2 pages are to be taken; 1 of 3 are free.');
    pool.give(2);
    expect(() => pool.give(1)).toThrow('1 pages are given back; 3 of 3 are free already.');
  });
});

const operation = fc.record({
  kind: fc.constantFrom('put', 'put', 'hold', 'release', 'release', 'remove'),
  id: fc.nat(7),
  pages: fc.integer({ min: 1, max: 4 }),
});

describe('a cache of adapters', () => {
  it('holds what is in use and drops the rest in the order of its last use, in random histories', () => {
    let evictions = 0;
    let refusals = 0;
    const sizes = fc.record({ pages: fc.integer({ min: 1, max: 9 }), most: fc.integer({ min: 1, max: 5 }) });
    fc.assert(
      fc.property(
        sizes,
        fc.array(operation, { minLength: 60, maxLength: 120, size: 'max' }),
        ({ pages: all, most }, history) => {
          const cache = new AdapterCache<string>(all, most);
          const slow = new SlowCache(all, most);
          for (const { kind, id, pages } of history) {
            const known = slow.find(id);
            const key = BigInt(id);
            if (kind === 'put' && known === undefined) {
              const before = cache.usedPages;
              const room = cache.hasRoom(pages);
              const evicted = cache.put(key, pages, `value ${id}`);
              const expected = slow.put(id, pages);
              expect(evicted?.map((one) => Number(one.id)) ?? null).toEqual(expected);
              expect(room).toBe(evicted !== null);
              if (evicted === null) expect(cache.usedPages).toBe(before);
              for (const one of evicted ?? []) expect(one.value).toBe(`value ${one.id}`);
              evictions += evicted?.length ?? 0;
              refusals += evicted === null ? 1 : 0;
            } else if (kind === 'hold' && known !== undefined) {
              cache.hold(key);
              slow.hold(id);
            } else if (kind === 'release' && (known?.uses ?? 0) > 0) {
              cache.release(key);
              slow.release(id);
            } else if (kind === 'remove' && known?.uses === 0) {
              cache.remove(key);
              slow.remove(id);
            }
            expect(cache.usedPages).toBe(slow.used);
            expect(cache.size).toBe(slow.entries.length);
            for (const entry of slow.entries) expect(cache.uses(BigInt(entry.id))).toBe(entry.uses);
            const held = slow.entries.filter(({ uses }) => uses > 0);
            expect(cache.heldPages).toBe(held.reduce((sum, entry) => sum + entry.pages, 0));
          }
        },
      ),
      { numRuns: draws(100) },
    );
    expect(evictions, 'some make room').toBeGreaterThan(200);
    expect(refusals, 'some find none').toBeGreaterThan(100);
  });

  it('refuses what cannot be, and changes nothing', () => {
    const cache = new AdapterCache<number>(2);
    cache.put(1n, 1, 0);
    expect(() => cache.put(1n, 1, 0)).toThrow('Adapter 1 is in the cache already.');
    expect(() => cache.remove(1n)).toThrow('Adapter 1 is held or not there; it cannot be removed.');
    expect(() => cache.hold(2n)).toThrow('Adapter 2 is not in the cache; it cannot be held.');
    cache.release(1n);
    expect(() => cache.release(1n)).toThrow('Adapter 1 is released, but no request holds it.');
    expect([cache.size, cache.usedPages, cache.heldPages]).toEqual([1, 1, 0]);
  });
});
