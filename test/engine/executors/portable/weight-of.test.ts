import fc from 'fast-check';
import { expect, it } from 'vitest';
import { weightOf } from '../../../../engine/executors/portable/sampling/weight-of.js';
import { draws } from '../../../support/scale.js';

it('a weight is the exponential function within 3e-12, and nothing below 2 ** -125', () => {
  const distance = fc.double({ min: 0, max: 86, noNaN: true });
  const inverse = fc.double({ min: 0.01, max: 1, noNaN: true });
  fc.assert(
    fc.property(distance, inverse, fc.double({ min: -50, max: 50, noNaN: true }), (below, scale, maximum) => {
      const logit = maximum - below;
      const expected = Math.exp((logit - maximum) * scale);
      expect(Math.abs(weightOf(logit, maximum, scale) / expected - 1)).toBeLessThan(3e-12);
    }),
    { numRuns: draws(1000) },
  );
  expect(weightOf(3, 3, 1e5)).toBe(1);
  expect(weightOf(-87, 0, 1)).toBe(0);
  expect(weightOf(-Infinity, 0, 1)).toBe(0);
  expect(weightOf(-1, 0, Infinity)).toBe(0);
});
