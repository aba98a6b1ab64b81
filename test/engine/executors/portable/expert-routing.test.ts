import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { routeRows } from '../../../../engine/executors/portable/expert-routing.js';
import type { ExpertRule } from '../../../../network/expert-rule.js';
import { naiveShares } from '../../../support/naive-experts.js';
import { draws } from '../../../support/scale.js';

/** Few different numbers, so that many are equal, in addition to all that there are. */
const score = fc.oneof(
  fc.constantFrom(0, -0, 1, 2, -1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
  fc.float(),
  fc.float({ min: -20, max: 20, noNaN: true }),
);

const bias = fc.oneof(fc.constantFrom(0, 1, -1, Number.NaN), fc.float({ min: -2, max: 2, noNaN: true }));

/** A number of experts in groups, and of groups and experts that a row goes to. */
const shape = fc
  .record({ groups: fc.integer({ min: 1, max: 4 }), size: fc.integer({ min: 1, max: 6 }) })
  .chain(({ groups, size }) =>
    fc.integer({ min: 1, max: groups }).chain((usedGroups) =>
      fc.record({
        count: fc.constant(groups * size),
        used: fc.integer({ min: 1, max: usedGroups * size }),
        groups: fc.option(
          fc.constantFrom(...([1, 2] as const).filter((top) => top <= size)).map((top) => ({
            count: groups,
            used: usedGroups,
            top,
          })),
          { nil: undefined },
        ),
      }),
    ),
  );

/** Rules by sparsemixer: two experts of one group. */
const sparse = fc
  .record({ jitter: fc.constantFrom(0, 0.01, 0.3, 1), factor: fc.constantFrom(1, 2.5) })
  .map((rest): ExpertRule => ({ ...rest, used: 2, normalize: false, scoring: 'sparsemixer' }));

const mixture = fc.record({ shape, rows: fc.integer({ min: 0, max: 9 }) }).chain(({ shape, rows }) => {
  const { count, used, groups } = shape;
  const numbers = (of: fc.Arbitrary<number>, length: number) =>
    fc.array(of, { minLength: length, maxLength: length }).map((all) => Float32Array.from(all));
  const rule = fc.record({
    used: fc.constant(used),
    normalize: fc.boolean(),
    scoring: fc.constantFrom('softmax' as const, 'sigmoid' as const),
    factor: fc.constantFrom(1, 2.5),
    sumEpsilon: fc.constantFrom(0, 0.01),
  });
  const besides = {
    count: fc.constant(count),
    rows: fc.constant(rows),
    scores: numbers(score, rows * count),
  };
  const others = fc.record({
    ...besides,
    rule: rule.map(
      ({ sumEpsilon, ...rest }): ExpertRule => ({
        ...rest,
        ...(groups && { groups }),
        ...(rest.normalize && rest.scoring === 'sigmoid' && { sumEpsilon }),
      }),
    ),
    choiceBias: fc.option(numbers(bias, count)),
  });
  const ofTwo = fc.record({ ...besides, rule: sparse, choiceBias: fc.constant(null) });
  return count < 2 ? others : fc.oneof({ weight: 3, arbitrary: others }, { weight: 1, arbitrary: ofTwo });
});

const routed = (scores: ArrayLike<number>, count: number, used: number, normalize: boolean) =>
  routeRows(Float32Array.from(scores), scores.length / count, { count, used, normalize });

describe('the experts of rows', () => {
  it('are those of full sorts, with shares in double precision', () => {
    fc.assert(
      fc.property(mixture, ({ count, rows, rule, choiceBias, scores }) => {
        const { experts, shares } = routeRows(scores, rows, { ...rule, count }, { choiceBias });
        const { used } = rule;
        for (let row = 0; row < rows; row++) {
          const own = scores.slice(row * count, (row + 1) * count);
          const expected = naiveShares(own, rule, choiceBias);
          const places = expected.map((_, i) => row * used + i);
          expect(places.map((place) => experts[place])).toEqual(expected.map(({ expert }) => expert));
          for (const [i, { share }] of expected.entries()) {
            if (Number.isNaN(share)) expect(shares[places[i]!]).toBeNaN();
            else expect(Math.abs(shares[places[i]!]! - share)).toBeLessThanOrEqual(2 ** -22);
          }
        }
      }),
      { numRuns: draws(400) },
    );
  });

  it('list each row by its experts, in ascending order', () => {
    fc.assert(
      fc.property(mixture, ({ count, rows, rule, choiceBias, scores }) => {
        const { experts, begins, places } = routeRows(scores, rows, { ...rule, count }, { choiceBias });
        expect([begins[0], begins[count]]).toEqual([0, rows * rule.used]);
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
      fc.property(mixture, ({ count, rows, rule, choiceBias, scores }) => {
        const shape = { ...rule, count };
        const all = routeRows(scores, rows, shape, { choiceBias });
        for (let row = 0; row < rows; row++) {
          const alone = routeRows(scores.slice(row * count, (row + 1) * count), 1, shape, { choiceBias });
          const own = [row * rule.used, (row + 1) * rule.used] as const;
          expect(all.experts.slice(...own)).toEqual(alone.experts);
          expect(all.shares.slice(...own)).toEqual(alone.shares);
        }
      }),
    );
  });

  it('are those of the highest groups, by one or two of their experts, and by the bias', () => {
    const of = (scores: number[], top: 1 | 2, choiceBias: number[] | null = null) => {
      const groups = { count: 3, used: 1, top };
      const shape = { count: 6, used: 1, normalize: true, scoring: 'sigmoid', groups } as const;
      const bias = choiceBias && Float32Array.from(choiceBias);
      const { experts, shares } = routeRows(
        Float32Array.from(scores),
        1,
        { ...shape, factor: 3 },
        { choiceBias: bias },
      );
      expect([...shares]).toEqual([3]);
      return experts[0];
    };
    expect(of([5, -5, 1, 1.5, 0, 0], 1)).toBe(0);
    expect(of([5, -5, 1, 1.5, 0, 0], 2)).toBe(3);
    expect(of([5, -5, 1, 1.5, 0, 0], 2, [0, 0, 0, 0, 1, 1])).toBe(4);
    expect(of([1, 1, 1, 1, 1, 1], 2)).toBe(0);
    // What is not a number is lowest; its row has no share.
    const shape = { count: 4, used: 2, normalize: false, groups: { count: 2, used: 1, top: 1 } } as const;
    const nothing = routeRows(Float32Array.of(Number.NaN, Number.NaN, 0, 0), 1, {
      ...shape,
      scoring: 'sigmoid',
    });
    expect([[...nothing.experts], [...nothing.shares]]).toEqual([
      [2, 3],
      [Number.NaN, Number.NaN],
    ]);
  });

  it('share by sparsemixer among the scores near the expert, and the second one without the first', () => {
    const of = (scores: number[], jitter: number) => {
      const shape = {
        count: scores.length,
        used: 2,
        normalize: false,
        scoring: 'sparsemixer',
        jitter,
      } as const;
      const { experts, shares } = routeRows(Float32Array.from(scores), 1, shape);
      return [...experts].map((expert, i) => [expert, shares[i]]);
    };
    const chance = (own: number, ...others: number[]) =>
      Math.fround(1 / others.reduce((sum, other) => sum + Math.exp(other - own), 1));
    // Within 2 * jitter of the greater of two sizes: 3 is near 4, not 1; then 1 is far from 3.
    expect(of([4, 1, 3, -5], 0.125)).toEqual([
      [0, chance(4, 3)],
      [2, 1],
    ]);
    // A score below 0 is as far as its size: (4 + 5) / 5 is below 2.
    expect(of([4, 1, 3, -5], 1)).toEqual([
      [0, chance(4, 1, 3, -5)],
      [2, chance(3, 1, -5)],
    ]);
    expect(of([1, 2, 2, 2], 0)).toEqual([
      [1, chance(2, 2, 2)],
      [2, chance(2, 2)],
    ]);
    expect(of([-1, -1.5, -2], 0.25)).toEqual([
      [0, chance(-1, -1.5, -2)],
      [1, chance(-1.5, -2)],
    ]);
    expect(of([Number.NaN, 1, 0], 0.01)).toEqual([
      [1, Number.NaN],
      [2, Number.NaN],
    ]);
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
