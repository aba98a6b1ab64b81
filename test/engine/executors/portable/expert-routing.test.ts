import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { routeRows } from '../../../../engine/executors/portable/expert-routing.js';
import { naiveShares } from '../../../support/naive-experts.js';
import { draws } from '../../../support/scale.js';

/** Few different numbers, so that many are equal, beside all that there are. */
const score = fc.oneof(
  fc.constantFrom(0, -0, 1, 2, -1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
  fc.float(),
  fc.float({ min: -20, max: 20, noNaN: true }),
);

const mixture = fc
  .record({ count: fc.integer({ min: 1, max: 12 }), rows: fc.integer({ min: 0, max: 9 }) })
  .chain(({ count, rows }) =>
    fc.record({
      count: fc.constant(count),
      rows: fc.constant(rows),
      used: fc.integer({ min: 1, max: count }),
      normalize: fc.boolean(),
      scores: fc.array(score, { minLength: rows * count, maxLength: rows * count }),
    }),
  );

const routed = (scores: number[], count: number, used: number, normalize: boolean) =>
  routeRows(Float32Array.from(scores), scores.length / count, { count, used, normalize });

describe('the experts of rows', () => {
  it('are those of a full sort, with the shares of a softmax in double precision', () => {
    fc.assert(
      fc.property(mixture, ({ count, rows, used, normalize, scores }) => {
        const { experts, shares } = routed(scores, count, used, normalize);
        for (let row = 0; row < rows; row++) {
          const own = Float32Array.from(scores.slice(row * count, (row + 1) * count));
          const expected = naiveShares(own, { used, normalize });
          const places = expected.map((_, i) => row * used + i);
          expect(places.map((place) => experts[place])).toEqual(expected.map(({ expert }) => expert));
          for (const [i, { share }] of expected.entries()) {
            if (Number.isNaN(share)) expect(shares[places[i]!]).toBeNaN();
            else expect(Math.abs(shares[places[i]!]! - share)).toBeLessThanOrEqual(2 ** -24);
          }
        }
      }),
      { numRuns: draws(400) },
    );
  });

  it('list each row by its experts, in ascending order', () => {
    fc.assert(
      fc.property(mixture, ({ count, rows, used, normalize, scores }) => {
        const { experts, begins, places } = routed(scores, count, used, normalize);
        expect([begins[0], begins[count]]).toEqual([0, rows * used]);
        expect([...places].sort((a, b) => a - b)).toEqual([...places.keys()]);
        for (let expert = 0; expert < count; expert++) {
          const own = [...places.subarray(begins[expert], begins[expert + 1])];
          expect(own).toEqual([...experts.keys()].filter((place) => experts[place] === expert));
        }
      }),
    );
  });

  it('do not depend on the other rows', () => {
    fc.assert(
      fc.property(mixture, ({ count, rows, used, normalize, scores }) => {
        const all = routed(scores, count, used, normalize);
        for (let row = 0; row < rows; row++) {
          const alone = routed(scores.slice(row * count, (row + 1) * count), count, used, normalize);
          expect(all.experts.slice(row * used, (row + 1) * used)).toEqual(alone.experts);
          expect(all.shares.slice(row * used, (row + 1) * used)).toEqual(alone.shares);
        }
      }),
    );
  });

  it('are the lower numbers among equals, also of scores that are no numbers', () => {
    const of = (scores: number[], used: number) => [...routed(scores, scores.length, used, true).experts];
    expect(of([1, 3, 3, 3], 2)).toEqual([1, 2]);
    expect(of([0, -0, 0, 1], 2)).toEqual([0, 3]);
    expect(of([Number.NaN, 5, Number.NaN, 4], 3)).toEqual([0, 1, 3]);
    expect(of([Number.NaN, Number.NaN, Number.NaN], 2)).toEqual([0, 1]);
    expect(of([Number.NaN, -1e30, Number.NEGATIVE_INFINITY], 2)).toEqual([1, 2]);
  });

  it('share a row of scores as they are asked to', () => {
    const shares = (normalize: boolean) => [
      ...routed([0, Math.log(3), Math.log(2), 0], 4, 2, normalize).shares,
    ];
    for (const [i, share] of [0.6, 0.4].entries()) expect(shares(true)[i]).toBeCloseTo(share, 6);
    for (const [i, share] of [3 / 7, 2 / 7].entries()) expect(shares(false)[i]).toBeCloseTo(share, 6);
    // Without the highest score subtracted these would be infinite.
    expect([...routed([1000, 1000], 2, 2, true).shares]).toEqual([0.5, 0.5]);
  });

  it('have no shares where any score is no number', () => {
    const shares = (normalize: boolean) => [...routed([3, Number.NaN, 3], 3, 2, normalize).shares];
    for (const normalize of [true, false]) expect(shares(normalize)).toEqual([Number.NaN, Number.NaN]);
    expect([...routed([Number.NaN, Number.NaN], 2, 1, true).shares]).toEqual([Number.NaN]);
  });
});
