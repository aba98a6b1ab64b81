import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  chooseDraftLengths,
  couldPay,
  type DraftCandidate,
} from '../../../engine/speculation/draft-lengths.js';

const candidate = (acceptance: number, most = 16, drawn = false): DraftCandidate => ({
  acceptance,
  most,
  drawn,
});
/** `idle` rows cost what one does; from there on each costs its share. */
const withIdleRows = (idle: number) => (rows: number) => Math.max(1, rows / idle);
const load = (rows: number, spareRows: number, idle: number) => ({
  rows,
  spareRows,
  costOf: withIdleRows(idle),
  roundCost: 0,
});

describe('chooseDraftLengths', () => {
  it('is the worked example of its comment', () => {
    const costs = [0, 10, 10, 10, 13, 20, 30];
    const lengths = chooseDraftLengths([candidate(0.7)], {
      rows: 1,
      spareRows: 5,
      costOf: (rows) => costs[rows]!,
      roundCost: 0,
    });
    expect(lengths).toEqual([2]);
  });

  it('fills the rows that cost nothing, and more where what is drafted is nearly certain', () => {
    expect(chooseDraftLengths([candidate(0.5)], load(1, 15, 4))).toEqual([3]);
    expect(chooseDraftLengths([candidate(0.5)], load(1, 15, 8))[0]).toBeGreaterThanOrEqual(6);
    expect(chooseDraftLengths([candidate(0.02)], load(1, 15, 1))).toEqual([0]);
  });

  it('gives the idle rows to those whose drafts are accepted most', () => {
    expect(chooseDraftLengths([candidate(0.9), candidate(0.2)], load(2, 3, 4))).toEqual([2, 0]);
    expect(chooseDraftLengths([candidate(0.8), candidate(0.8)], load(2, 6, 6))).toEqual([2, 2]);
  });

  it('drafts nothing where every row costs its share', () => {
    for (const rows of [8, 32, 64]) {
      const all = new Array<DraftCandidate>(rows).fill(candidate(1));
      expect(chooseDraftLengths(all, load(rows, 64, 8))).toEqual(all.map(() => 0));
      expect(couldPay(load(rows, 64, 8), rows, 16)).toBe(false);
    }
    expect(couldPay(load(4, 64, 8), 4, 16)).toBe(true);
    expect(couldPay(load(4, 64, 8), 0, 16)).toBe(false);
  });

  it('counts the rows of contexts: beside a chunk nothing is idle', () => {
    expect(chooseDraftLengths([candidate(0.9)], load(256, 64, 8))).toEqual([0]);
  });

  it('weighs what the draft model costs against what it brings', () => {
    const free = { ...load(1, 15, 8), roundCost: 0 };
    const short = chooseDraftLengths([candidate(0.7, 16, true)], { ...free, roundCost: 0.2 });
    expect(short[0]).toBeGreaterThan(0);
    expect(short[0]).toBeLessThan(chooseDraftLengths([candidate(0.7, 16, true)], free)[0]!);
    expect(chooseDraftLengths([candidate(0.7, 16, true)], { ...free, roundCost: 2 })).toEqual([0]);
    // One round serves all: what others draw with it costs nothing more.
    expect(
      chooseDraftLengths([candidate(0.9, 16, true), candidate(0.9, 2)], { ...free, roundCost: 5 }),
    ).toEqual([0, 2]);
  });

  it('keeps every limit, and is never worth less per cost than no draft at all', () => {
    const candidates = fc.array(
      fc.record({
        acceptance: fc.double({ min: 0, max: 1, noNaN: true }),
        most: fc.integer({ min: 0, max: 9 }),
        drawn: fc.boolean(),
      }),
      { minLength: 1, maxLength: 12 },
    );
    const steps = fc.array(fc.double({ min: 0, max: 3, noNaN: true }), { minLength: 140, maxLength: 140 });
    const input = fc.record({
      candidates,
      steps,
      contextRows: fc.integer({ min: 0, max: 40 }),
      spareRows: fc.integer({ min: 0, max: 60 }),
      roundCost: fc.double({ min: 0, max: 2, noNaN: true }),
    });
    fc.assert(
      fc.property(input, ({ candidates: all, steps: slopes, contextRows, spareRows, roundCost }) => {
        const rows = all.length + contextRows;
        const costs = [1];
        for (const slope of slopes) costs.push(costs.at(-1)! + slope);
        const costOf = (count: number) => costs[count]!;
        const lengths = chooseDraftLengths(all, { rows, spareRows, costOf, roundCost });
        const total = lengths.reduce((sum, length) => sum + length, 0);
        expect(total).toBeLessThanOrEqual(spareRows);
        for (const [i, { most }] of all.entries()) expect(lengths[i]).toBeLessThanOrEqual(most);
        if (total === 0) return;
        const rounds = Math.max(...all.map(({ drawn }, i) => (drawn ? lengths[i]! : 0)));
        const brought = lengths.reduce((sum, length, i) => {
          let expected = 0;
          for (let k = 1; k <= length; k++) expected += Math.min(all[i]!.acceptance, 0.95) ** k;
          return sum + expected;
        }, rows);
        expect(brought / (costOf(rows + total) + rounds * roundCost)).toBeGreaterThan(rows / costOf(rows));
      }),
    );
  });
});
