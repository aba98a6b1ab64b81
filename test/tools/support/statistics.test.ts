import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { median, percentile, spread } from '../../../tools/support/statistics.js';

describe('median', () => {
  it('is the middle of an odd number and the mean of two of an even one', () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([1, 2, 3, 100])).toBe(2.5);
    expect(median([])).toBeNaN();
  });

  it('has as many values above as below, in any order', () => {
    fc.assert(
      fc.property(fc.array(fc.integer(), { minLength: 1 }), (values) => {
        const middle = median(values);
        const below = values.filter((value) => value < middle).length;
        const above = values.filter((value) => value > middle).length;
        expect(below).toBeLessThanOrEqual(values.length / 2);
        expect(above).toBeLessThanOrEqual(values.length / 2);
      }),
    );
  });
});

describe('percentile', () => {
  it('is the smallest value that is not less than the share', () => {
    const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);
    expect(percentile(hundred, 0.99)).toBe(99);
    expect(percentile(hundred, 0.5)).toBe(50);
    expect(percentile([1, 2, 3], 0.99)).toBe(3);
    expect(percentile([7], 0)).toBe(7);
    expect(percentile([], 0.5)).toBeNaN();
  });
});

describe('spread', () => {
  it('is the width over the median', () => {
    expect(spread([90, 100, 120])).toBeCloseTo(0.3);
    expect(spread([5, 5])).toBe(0);
  });
});
