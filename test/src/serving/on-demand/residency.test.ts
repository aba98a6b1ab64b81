import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keepAliveMs } from '../../../../src/options/keep-alive.js';
import { evictionsFor, memoryShare, type Resident } from '../../../../src/serving/on-demand/residency.js';

const resident = (name: string, fields: Partial<Resident> = {}): Resident => ({
  name,
  bytes: 3,
  isBusy: false,
  lastUsedMs: 0,
  keepAliveMs: 1000,
  ...fields,
});
const namesOf = (evicted: readonly Resident[] | null) => evicted?.map(({ name }) => name) ?? null;

describe('which models make room for another', () => {
  it('are none where there is room, else those used least recently, and no more than needed', () => {
    const all = [
      resident('new', { lastUsedMs: 3 }),
      resident('old', { lastUsedMs: 1 }),
      resident('mid', { lastUsedMs: 2 }),
    ];
    expect(namesOf(evictionsFor(all, 1, 10))).toEqual([]);
    expect(namesOf(evictionsFor(all, 2, 10))).toEqual(['old']);
    expect(namesOf(evictionsFor(all, 5, 10))).toEqual(['old', 'mid']);
    expect(namesOf(evictionsFor(all, 10, 10))).toEqual(['old', 'mid', 'new']);
  });

  it('are never those in use, and those that stay for ever only where no others will do', () => {
    const busy = resident('busy', { isBusy: true });
    const kept = resident('kept', { keepAliveMs: Number.POSITIVE_INFINITY });
    const late = resident('late', { lastUsedMs: 9 });
    expect(namesOf(evictionsFor([busy, kept, late], 4, 10))).toEqual(['late']);
    expect(namesOf(evictionsFor([busy, kept, late], 7, 10))).toEqual(['late', 'kept']);
    expect(evictionsFor([busy, kept, late], 8, 10)).toBe(null);
  });

  it('are as few of the least missed as a slow search finds', () => {
    const residents = fc.uniqueArray(
      fc.record({
        name: fc.string(),
        bytes: fc.integer({ min: 0, max: 20 }),
        isBusy: fc.boolean(),
        lastUsedMs: fc.integer({ min: 0, max: 1000 }),
        keepAliveMs: fc.constantFrom(0, 1000, Number.POSITIVE_INFINITY),
      }),
      { selector: ({ lastUsedMs }) => lastUsedMs, maxLength: 8 },
    );
    fc.assert(
      fc.property(
        residents,
        fc.integer({ min: 0, max: 60 }),
        fc.integer({ min: 0, max: 60 }),
        (all, needed, limit) => {
          // Every prefix of the order in which they are missed, the shortest first.
          const order = all
            .filter(({ isBusy }) => !isBusy)
            .sort((a, b) => {
              const forEver =
                Number(!Number.isFinite(a.keepAliveMs)) - Number(!Number.isFinite(b.keepAliveMs));
              return forEver === 0 ? a.lastUsedMs - b.lastUsedMs : forEver;
            });
          let expected: string[] | null = null;
          for (let count = 0; count <= order.length && expected === null; count++) {
            const gone = new Set(order.slice(0, count));
            const used = all.filter((one) => !gone.has(one)).reduce((sum, { bytes }) => sum + bytes, 0);
            if (used + needed <= limit) expected = order.slice(0, count).map(({ name }) => name);
          }
          expect(namesOf(evictionsFor(all, needed, limit))).toEqual(expected);
        },
      ),
    );
  });
});

describe('the memory of a model before it is loaded', () => {
  it('is its weights and a cache of at most a quarter of the bound', () => {
    expect(memoryShare(10, 1000, 100)).toEqual({ bytes: 35, cacheBytes: 25 });
    expect(memoryShare(10, 5, 100)).toEqual({ bytes: 15, cacheBytes: 5 });
    expect(memoryShare(90, 1000, 100)).toEqual({ bytes: 100, cacheBytes: 10 });
    expect(memoryShare(101, 0, 100)).toBe(null);
  });
});

describe('a time that a model stays', () => {
  it.each([
    ['5m', 300_000],
    ['1h30m', 5_400_000],
    ['1.5s', 1500],
    ['100ms', 100],
    ['0', 0],
    ['0s', 0],
    ['90', 90_000],
    [60, 60_000],
    [0.5, 500],
    [-1, Number.POSITIVE_INFINITY],
    ['-1', Number.POSITIVE_INFINITY],
    ['-5m', Number.POSITIVE_INFINITY],
    ['999999h', Number.POSITIVE_INFINITY],
    ['', null],
    ['soon', null],
    ['5 m', null],
    ['m', null],
    ['5d', null],
    [Number.NaN, null],
  ])('%j is %j ms', (value, ms) => {
    expect(keepAliveMs(value)).toBe(ms);
  });
});
