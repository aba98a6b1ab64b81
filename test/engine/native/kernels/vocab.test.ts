import { describe, expect, it } from 'vitest';
import { expectSameBits, guarded, guardedRow, kernels, randomFloats, tables, twins } from './kernel-hooks.js';

const SIZES = [1, 7, 17, 33, 1000, 1023, 1024, 1025, 5000];
const logitsOf = (n: number, seed = n) => randomFloats(n, seed).map((x) => 10 * x);

function argmax(table: string, logits: Float32Array) {
  return kernels.argmax(table, { logits: guardedRow(logits), n: logits.length });
}

/** Both kernels of the softmax over one row, against the given maximum and temperature. */
function softmax(table: string, logits: Float32Array, temperature: number, maximum = Math.max(...logits)) {
  const n = logits.length;
  const y = guarded(1, n, n);
  const fields = { logits: guardedRow(logits), n, maximum, inverseTemperature: 1 / temperature };
  kernels.expRow(table, { ...fields, y: y.view });
  expect(y.guardsIntact()).toBe(true);
  return { weights: y.row(0), sum: kernels.sumExp(table, fields) };
}

describe.each(tables)('vocabulary, %s', (table) => {
  it('finds the greatest logit wherever it stands', () => {
    for (const n of SIZES)
      for (const at of new Set([0, n >> 1, n - 1, Math.max(0, n - 2)])) {
        const logits = logitsOf(n);
        logits[at] = 11;
        expect(argmax(table, logits)).toEqual({ index: at, maximum: 11 });
      }
  });

  it('takes the lowest token of a tie, and zero for either zero', () => {
    for (const n of SIZES.filter((size) => size > 1)) {
      const logits = logitsOf(n);
      for (const at of [n - 1, n >> 1, 1]) {
        logits[at] = 12;
        expect(argmax(table, logits)).toEqual({ index: at, maximum: 12 });
      }
      const zeros = new Float32Array(n).fill(-1);
      zeros[n - 1] = 0;
      zeros[n >> 1] = -0;
      expect(argmax(table, zeros).index).toBe(n >> 1);
    }
  });

  it('finds a maximum among negative values and minus infinities, padding counts for nothing', () => {
    const logits = new Float32Array(19).fill(Number.NEGATIVE_INFINITY);
    logits[18] = -3e38;
    expect(argmax(table, logits).index).toBe(18);
  });

  it('answers -1 for a NaN anywhere, an infinity, or nothing finite', () => {
    for (const n of SIZES)
      for (const bad of [Number.NaN, Number.POSITIVE_INFINITY])
        for (const at of [0, n >> 1, n - 1]) {
          const logits = logitsOf(n);
          logits[at] = bad;
          expect(argmax(table, logits).index).toBe(-1);
        }
    expect(argmax(table, new Float32Array(9).fill(Number.NEGATIVE_INFINITY)).index).toBe(-1);
  });

  it('weighs tokens by the exponential, and sums those weights', () => {
    for (const n of SIZES)
      for (const temperature of [0.1, 1, 3]) {
        const logits = logitsOf(n);
        const { weights, sum } = softmax(table, logits, temperature);
        const maximum = Math.max(...logits);
        const expected = Array.from(logits, (x) => Math.exp((x - maximum) / temperature));
        expected.forEach((wanted, i) => {
          // The exponent itself is rounded to f32: up to 200 here, so its error shows in the weight.
          expect(Math.abs(weights[i]! - wanted)).toBeLessThan(2e-5 * wanted + 1e-37);
        });
        const total = expected.reduce((a, b) => a + b, 0);
        expect(Math.abs(sum - total)).toBeLessThan(4e-6 * total);
      }
  });

  it('keeps the exponential within two units in the last place over its whole range', () => {
    const logits = Float32Array.from({ length: 4001 }, (_, i) => -87.25 + (i / 4000) * 175.5);
    const { weights } = softmax(table, logits, 1, 0);
    logits.forEach((x, i) => {
      const wanted = Math.exp(x);
      const unit = 2 ** (Math.floor(Math.log2(wanted)) - 23);
      expect(Math.abs(weights[i]! - wanted)).toBeLessThan(2 * unit);
    });
  });

  it('gives zero for what is masked out and takes no part in the sum', () => {
    const logits = logitsOf(37);
    logits[5] = Number.NEGATIVE_INFINITY;
    logits[36] = -1e30;
    const { weights, sum } = softmax(table, logits, 1);
    expect([weights[5], weights[36]]).toEqual([0, 0]);
    const others = weights.reduce((a, b) => a + b, 0);
    expect(Math.abs(sum - others)).toBeLessThan(1e-5 * others);
  });

  it('sums fixed chunks of 1024, added in double precision in ascending order', () => {
    const logits = logitsOf(4 * 1024 + 100);
    const maximum = Math.max(...logits);
    let total = 0;
    for (let begin = 0; begin < logits.length; begin += 1024)
      total += softmax(table, logits.slice(begin, begin + 1024), 0.7, maximum).sum;
    expect(softmax(table, logits, 0.7, maximum).sum).toBe(total);
  });
});

it.each(twins)('vocabulary, %s gives the bits of %s', (vector, scalar) => {
  for (const n of SIZES)
    for (const temperature of [0.05, 0.7, 1, 5]) {
      const logits = logitsOf(n, n + 1);
      const [a, b] = [softmax(vector, logits, temperature), softmax(scalar, logits, temperature)];
      expectSameBits(a.weights, b.weights, () => `${n} values at temperature ${temperature}`);
      expect(a.sum).toBe(b.sum);
      expect(argmax(vector, logits)).toEqual(argmax(scalar, logits));
    }
  const wide = Float32Array.from({ length: 4000 }, (_, i) => (i - 2000) / 16);
  expectSameBits(
    softmax(vector, wide, 1, 0).weights,
    softmax(scalar, wide, 1, 0).weights,
    () => 'exponential',
  );
});
