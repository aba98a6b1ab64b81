import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  chooseDraftLengths as choose,
  couldPay,
  type DraftCandidate,
  type DraftLoad,
} from '../../../engine/speculation/draft-lengths.js';

const chooseDraftLengths = (candidates: readonly DraftCandidate[], load: DraftLoad) =>
  choose(candidates, load).lengths;
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
  roundCostOf: () => 0,
});

describe('chooseDraftLengths', () => {
  it('is the worked example of its comment', () => {
    const costs = [0, 10, 10, 10, 13, 20, 30];
    const lengths = chooseDraftLengths([candidate(0.7)], {
      rows: 1,
      spareRows: 5,
      costOf: (rows) => costs[rows]!,
      roundCostOf: () => 0,
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

  it('could never pay where even certain drafts are not chosen, and could wherever any are', () => {
    const steps = fc.array(fc.double({ min: 0, max: 3, noNaN: true }), { minLength: 140, maxLength: 140 });
    const sizes = fc.record({
      sequences: fc.integer({ min: 1, max: 12 }),
      contextRows: fc.integer({ min: 0, max: 40 }),
      most: fc.integer({ min: 1, max: 9 }),
      spareRows: fc.integer({ min: 0, max: 60 }),
    });
    fc.assert(
      fc.property(sizes, steps, ({ sequences, contextRows, most, spareRows }, slopes) => {
        const costs = [1];
        for (const slope of slopes) costs.push(costs.at(-1)! + slope);
        const load = { rows: sequences + contextRows, spareRows, costOf: (count: number) => costs[count]! };
        const certain = new Array<DraftCandidate>(sequences).fill(candidate(1, most));
        const lengths = chooseDraftLengths(certain, { ...load, roundCostOf: () => 0 });
        expect(couldPay(load, sequences, most)).toBe(lengths.some((length) => length > 0));
      }),
    );
  });

  it('weighs a round by how many sequences it draws for, and says what the draft model saves', () => {
    const two = [candidate(0.9, 1, true), candidate(0.9, 1, true)];
    const free = load(2, 15, 8);
    const shared = choose(two, { ...free, roundCostOf: () => 0.3 });
    expect(shared.lengths).toEqual([1, 1]);
    // The saving: 3.8 tokens in 1.3 steps against 2 tokens in one step that is worth a fiftieth more.
    expect(shared.savedByModel).toBeCloseTo(1 / (2 * 1.02) - 1.3 / 3.8);
    expect(choose(two, { ...free, roundCostOf: (sequences) => 0.3 * sequences ** 3 })).toMatchObject({
      lengths: [1, 0],
    });
    expect(choose([candidate(0.9)], free).savedByModel).toBe(0);
  });

  it('counts the rows of contexts: beside a chunk nothing is idle', () => {
    expect(chooseDraftLengths([candidate(0.9)], load(256, 64, 8))).toEqual([0]);
  });

  it('weighs what the draft model costs against what it brings', () => {
    const free = { ...load(1, 15, 8), roundCostOf: () => 0 };
    const short = chooseDraftLengths([candidate(0.7, 16, true)], { ...free, roundCostOf: () => 0.2 });
    expect(short[0]).toBeGreaterThan(0);
    expect(short[0]).toBeLessThan(chooseDraftLengths([candidate(0.7, 16, true)], free)[0]!);
    expect(chooseDraftLengths([candidate(0.7, 16, true)], { ...free, roundCostOf: () => 2 })).toEqual([0]);
    // One round serves all sequences: the drafts of the others cost nothing more.
    expect(
      chooseDraftLengths([candidate(0.9, 16, true), candidate(0.9, 2)], { ...free, roundCostOf: () => 5 }),
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
      roundCosts: fc.array(fc.double({ min: 0, max: 2, noNaN: true }), { minLength: 13, maxLength: 13 }),
    });
    fc.assert(
      fc.property(input, ({ candidates: all, steps: slopes, contextRows, spareRows, roundCosts }) => {
        const rows = all.length + contextRows;
        const costs = [1];
        for (const slope of slopes) costs.push(costs.at(-1)! + slope);
        const costOf = (count: number) => costs[count]!;
        const roundCostOf = (sequences: number) => roundCosts[sequences]!;
        const { lengths, savedByModel } = choose(all, { rows, spareRows, costOf, roundCostOf });
        const total = lengths.reduce((sum, length) => sum + length, 0);
        expect(total).toBeLessThanOrEqual(spareRows);
        for (const [i, { most }] of all.entries()) expect(lengths[i]).toBeLessThanOrEqual(most);
        const drawnLengths = all.map(({ drawn }, i) => (drawn ? lengths[i]! : 0));
        expect(savedByModel > 0).toBe(drawnLengths.some((length) => length > 0));
        if (total === 0) return;
        let rounds = 0;
        for (let round = 1; round <= Math.max(...drawnLengths); round++) {
          rounds += roundCostOf(drawnLengths.filter((length) => length >= round).length);
        }
        const brought = lengths.reduce((sum, length, i) => {
          let expected = 0;
          for (let k = 1; k <= length; k++) expected += Math.min(all[i]!.acceptance, 0.95) ** k;
          return sum + expected;
        }, rows);
        expect(brought / (costOf(rows + total) + rounds)).toBeGreaterThan(rows / costOf(rows));
      }),
    );
  });
});
