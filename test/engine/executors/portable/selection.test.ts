import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RowScan } from '../../../../engine/executors/portable/sampling/row-scan.js';
import { isStricter, NO_BOUND, Selection } from '../../../../engine/executors/portable/sampling/selection.js';
import { sortedTokens } from '../../../support/naive-sampling.js';
import { draws } from '../../../support/scale.js';

/** Rows with many equal logits, and with none; of few groups, and of many. */
const rows = fc
  .record({
    length: fc.integer({ min: 1, max: 700 }),
    levels: fc.constantFrom(1, 3, 1000),
    holes: fc.constantFrom(0, 0.3, 0.95),
    seed: fc.nat(),
  })
  .map(({ length, levels, holes, seed }) => {
    let state = seed;
    const next = () => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return state / 2 ** 32;
    };
    return Float32Array.from({ length }, () =>
      next() < holes ? -Infinity : Math.floor(next() * levels) / 8,
    );
  });

function scanned(logits: Float32Array) {
  const scan = new RowScan(logits.length);
  scan.scan(logits);
  return { scan, selection: new Selection(logits.length), sorted: sortedTokens(Float64Array.from(logits)) };
}

describe('a selection', () => {
  it('of the greatest tokens is the beginning of a full sort, -Infinity at its end', () => {
    fc.assert(
      fc.property(rows, fc.double({ min: 0, max: 1, noNaN: true }), (logits, part) => {
        const { scan, selection, sorted } = scanned(logits);
        const count = Math.max(1, Math.ceil(part * logits.length));
        const tokens = new Int32Array(count);
        selection.greatestTokens(logits, count, scan, tokens);
        expect([...tokens]).toEqual(sorted.slice(0, count));
      }),
      { numRuns: draws(100) },
    );
  });

  it('by a count is bounded by the last token of that beginning', () => {
    fc.assert(
      fc.property(rows, fc.double({ min: 0, max: 1, noNaN: true }), (logits, part) => {
        const { scan, selection, sorted } = scanned(logits);
        const k = Math.max(1, Math.ceil(part * logits.length));
        const last = sorted[k - 1]!;
        const expected = logits[last] === -Infinity ? NO_BOUND : { logit: logits[last]!, before: last + 1 };
        expect(selection.boundOfGreatest(logits, k, scan)).toEqual(expected);
      }),
      { numRuns: draws(100) },
    );
  });

  it('by a mass is bounded by the token at which the running sum reaches it', () => {
    fc.assert(
      fc.property(rows, fc.double({ min: 0, max: 1, noNaN: true }), (logits, part) => {
        const { scan, selection, sorted } = scanned(logits);
        fc.pre(scan.isFinite);
        // Whole numbers: sums are the same in every order.
        const weights = Float64Array.from(logits, (logit) => (logit === -Infinity ? 0 : 1 + logit * 8));
        const mass = Math.ceil(part * weights.reduce((a, b) => a + b, 0));
        let before = 0;
        let last = sorted[0]!;
        for (const token of sorted) {
          if (before >= mass && token !== sorted[0]) break;
          if (weights[token] === 0) break;
          last = token;
          before += weights[token]!;
        }
        expect(selection.boundOfMass(logits, weights, mass)).toEqual({
          logit: logits[last],
          before: last + 1,
        });
      }),
      { numRuns: draws(100) },
    );
  });

  it('is stricter where it holds fewer', () => {
    expect(isStricter({ logit: 2, before: 0 }, { logit: 1, before: 9 })).toBe(true);
    expect(isStricter({ logit: 1, before: 3 }, { logit: 1, before: 4 })).toBe(true);
    expect(isStricter({ logit: 1, before: 4 }, { logit: 1, before: 4 })).toBe(false);
    expect(isStricter(NO_BOUND, { logit: -5, before: 4 })).toBe(false);
  });
});
