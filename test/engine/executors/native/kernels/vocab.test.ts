import { describe, expect, it } from 'vitest';
import {
  expectSameBits,
  guarded,
  guardedRow,
  kernels,
  randomFloats,
  rowTables,
  twins,
} from './kernel-hooks.js';

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

/** Maxima and sums of the chunks of a row, then the sums over what lies before each bound. */
function chunks(table: string, logits: Float32Array, temperature: number, bounds: [number, number][] = []) {
  const n = logits.length;
  const count = Math.ceil(n / 1024);
  const [maxima, sums] = [guarded(1, count, count), guarded(1, count, count)];
  const groups = guarded(1, Math.ceil(n / 64), Math.ceil(n / 64));
  const row = { logits: guardedRow(logits), n, inverseTemperature: 1 / temperature };
  const fields = { ...row, maxima: maxima.view, groupMaxima: groups.view };
  const weights = guarded(1, n, n);
  kernels.chunkExp(table, { ...fields, sums: sums.view, weights: weights.view });
  expect(weights.guardsIntact()).toBe(true);
  expect(maxima.guardsIntact() && sums.guardsIntact() && groups.guardsIntact()).toBe(true);
  const alone = [guarded(1, count, count), guarded(1, count, count)] as const;
  kernels.chunkExp(table, { ...row, maxima: alone[0].view, sums: alone[1].view });
  expect([alone[0].row(0), alone[1].row(0)]).toEqual([maxima.row(0), sums.row(0)]);
  const above = bounds.map(([bound, before]) => {
    const part = guarded(1, count, count);
    kernels.chunkExpAbove(table, { ...fields, bound, before, sums: part.view });
    expect(part.guardsIntact()).toBe(true);
    const read = guarded(1, count, count);
    kernels.chunkExpAbove(table, { ...fields, weights: weights.view, bound, before, sums: read.view });
    expect(read.row(0)).toEqual(part.row(0));
    return part.row(0);
  });
  return { maxima: maxima.row(0), groups: groups.row(0), sums: sums.row(0), above };
}

/** Bounds at a value that many tokens have, in front of some of them, all or none. */
const boundsIn = (n: number): [number, number][] =>
  [0, 1, n >> 1, n - 1, n].flatMap((before): [number, number][] => [
    [2, before],
    [-3, before],
    [0.1, before],
  ]);
const coarse = (n: number) => logitsOf(n).map((x) => Math.round(x / 2));

describe.each(rowTables)('vocabulary, %s', (table) => {
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

  it('finds the greatest of each 64', () => {
    for (const n of SIZES) {
      const logits = logitsOf(n);
      const count = Math.ceil(n / 64);
      const groups = guarded(1, count, count);
      kernels.argmax(table, { logits: guardedRow(logits), n, groupMaxima: groups.view });
      expect(groups.guardsIntact()).toBe(true);
      const expected = Array.from({ length: count }, (_, i) =>
        Math.max(...logits.slice(64 * i, 64 * (i + 1))),
      );
      expect([...groups.row(0)]).toEqual(expected);
    }
  });

  it('weighs each chunk by its own maximum: all of it, or what lies before a bound', () => {
    for (const n of SIZES) {
      const logits = coarse(n);
      logits[n >> 2] = Number.NEGATIVE_INFINITY;
      const bounds = boundsIn(n);
      const { maxima, groups, sums, above } = chunks(table, logits, 1.5, bounds);
      for (const [i, group] of groups.entries())
        expect(group).toBe(Math.max(...logits.slice(64 * i, 64 * (i + 1))));
      for (let begin = 0; begin < n; begin += 1024) {
        const part = [...logits.slice(begin, begin + 1024).entries()];
        const maximum = Math.max(...part.map(([, x]) => x));
        expect(maxima[begin / 1024]).toBe(maximum);
        const sumOf = (kept: (x: number, token: number) => boolean) =>
          part.reduce((s, [i, x]) => (kept(x, begin + i) ? s + Math.exp((x - maximum) / 1.5) : s), 0);
        if (maximum === Number.NEGATIVE_INFINITY) expect(sums[begin / 1024]).toBe(0);
        else expect(sums[begin / 1024]! / sumOf(() => true)).toBeCloseTo(1, 5);
        for (const [i, [bound, before]] of bounds.entries()) {
          const expected = sumOf((x, token) => x > bound || (x === bound && token < before));
          expect(above[i]![begin / 1024]).toBeCloseTo(expected || 0, 4 - Math.log10(expected + 1));
        }
      }
    }
  });

  it('gives a chunk of nothing but minus infinities no weight, and NaN to one that is not finite', () => {
    const logits = logitsOf(3000).fill(Number.NEGATIVE_INFINITY, 1024, 2048);
    expect(chunks(table, logits, 1, [[-1, 0]])).toMatchObject({
      maxima: { 1: Number.NEGATIVE_INFINITY },
      sums: { 1: 0 },
      above: [{ 1: 0 }],
    });
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY])
      for (const at of [0, 1023, 1024, 2047, 2999]) {
        const { sums } = chunks(table, logits.with(at, bad), 1);
        expect([...sums].map(Number.isNaN)).toEqual([0, 1, 2].map((i) => i === at >> 10));
      }
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

  it('keeps the exponential within two units in the last place, and what the rounding of the exponent itself adds', () => {
    const logits = Float32Array.from({ length: 4001 }, (_, i) => -86.6 + (i / 4000) * 173.5);
    const { weights } = softmax(table, logits, 1, 0);
    logits.forEach((x, i) => {
      const wanted = Math.exp(x);
      const unit = 2 ** (Math.floor(Math.log2(wanted)) - 23);
      expect(Math.abs(weights[i]! - wanted)).toBeLessThan(2 * unit + (Math.abs(x) * wanted) / 2 ** 23);
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

  it('lists what is at least a value, in order, and nothing beyond the end', () => {
    for (const n of SIZES)
      for (const least of [-9.5, 0, 2, 11]) {
        const values = coarse(n);
        values[n >> 1] = Number.NaN;
        values[n >> 2] = Number.NEGATIVE_INFINITY;
        const indices = new Int32Array(n + 1).fill(-7);
        const count = kernels.indicesFrom(table, { values: guardedRow(values), n, least, indices });
        const expected = [...values.keys()].filter((i) => values[i]! >= least);
        expect([...indices.subarray(0, count)]).toEqual(expected);
        expect(indices[n]).toBe(-7);
      }
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
      const bounds = boundsIn(n);
      for (const row of [logits, coarse(n)])
        expect(chunks(vector, row, temperature, bounds)).toEqual(chunks(scalar, row, temperature, bounds));
    }
  const wide = Float32Array.from({ length: 4000 }, (_, i) => (i - 2600) / 16);
  expectSameBits(
    softmax(vector, wide, 1, 0).weights,
    softmax(scalar, wide, 1, 0).weights,
    () => 'exponential',
  );
});
