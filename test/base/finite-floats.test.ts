import { expect, it } from 'vitest';
import { firstNotFinite } from '../../base/finite-floats.js';

it('finds the first number that is not finite, wherever it stands', () => {
  expect(firstNotFinite(new Float32Array(0))).toBe(-1);
  for (const length of [1, 3, 4, 4095, 4096, 4097, 8192, 9001]) {
    const values = new Float32Array(length).map((_, i) => (i % 2 === 0 ? -3.4e38 : 1e-45));
    expect(firstNotFinite(values), `${length}`).toBe(-1);
    for (const place of new Set([0, length >> 1, length - 1]))
      for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
        const broken = values.slice();
        broken[place] = wrong;
        broken[length - 1] = place === length - 1 ? wrong : Number.NaN;
        expect(firstNotFinite(broken), `${wrong} at ${place} of ${length}`).toBe(place);
      }
  }
});

it('takes numbers as finite whose sum is beyond a float32, and finds infinities that would cancel each other', () => {
  const largest = new Float32Array(4096).fill(3.4028234663852886e38);
  expect(firstNotFinite(largest)).toBe(-1);
  largest[5] = Number.POSITIVE_INFINITY;
  largest[4000] = Number.NEGATIVE_INFINITY;
  expect(firstNotFinite(largest)).toBe(5);
});
