import { describe, expect, it } from 'vitest';
import { guarded, guardedRow, kernels, randomFloats, tables } from './kernel-hooks.js';

const BLOCK = 512;
/** Buckets for each power of two, from 2^-48 on; the last number is of what is left out. */
const PER_OCTAVE = 32;
const NUM_BUCKETS = 64 * PER_OCTAVE;
const SIZES = [8, 16, 504, 512, 520, 1040];
const GUARD = 16;

/** A row of n values in steps of 1/8, so that some are equal; some are left out. */
function rowOf(n: number, spread: number): Float32Array {
  return randomFloats(n, n).map((x, i) => (i % 7 === 3 ? -Infinity : Math.round(8 * spread * x) / 8));
}

/** Runs all passes of a table. */
function passes(table: string, values: Float32Array, scale: number) {
  const n = values.length;
  const present = values.filter((value) => value > -Infinity);
  const maximum = Math.max(...present);
  const doubles = new Float64Array(n + 2 * GUARD).fill(Number.NaN);
  const weights = doubles.subarray(GUARD, GUARD + n);
  const blockSums = new Float64Array(Math.ceil(n / BLOCK));
  const buckets = new Int32Array(n + GUARD).fill(-7);
  const between = guarded(1, n, n, values);
  const inBuckets = guarded(1, n, n, values);
  const asked = { n, maximum, center: 1.25, scale, weight: 0.125, low: -1, high: 0.5, last: 48 * PER_OCTAVE };
  const results = kernels.wideRow(table, {
    ...asked,
    values: guardedRow(values),
    weights,
    blockSums,
    buckets,
    between: between.view,
    inBuckets: inBuckets.view,
  });
  expect(between.guardsIntact() && inBuckets.guardsIntact()).toBe(true);
  expect(Array.from(doubles.subarray(0, GUARD)).concat(Array.from(doubles.subarray(GUARD + n)))).toEqual(
    new Array(2 * GUARD).fill(Number.NaN),
  );
  expect([...buckets.subarray(n)]).toEqual(new Array(GUARD).fill(-7));
  return {
    ...{ asked, results, present, blockSums: [...blockSums], weights: [...weights] },
    ...{ buckets: [...buckets.subarray(0, n)], between: [...between.row(0)], left: [...inBuckets.row(0)] },
  };
}

const sum = (values: Iterable<number>) => Array.from(values).reduce((total, value) => total + value, 0);

describe.each(tables)('a row in f64, %s', (table) => {
  it.each(SIZES)('%i places: weighs, sums, filters and numbers them', (n) => {
    for (const [spread, scale] of [
      [4, 1.5],
      [40, 60],
    ] as const) {
      const values = rowOf(n, spread);
      const { asked, results, present, blockSums, weights, buckets, between, left } = passes(
        table,
        values,
        scale,
      );
      const exponents = Array.from(values, (value) => (value - asked.maximum) * scale);
      const expected = exponents.map((y) => (y < -1020 ? 0 : 2 ** y));
      expect(Math.abs(results.sum / sum(expected) - 1)).toBeLessThan(1e-13);
      const moment = sum(expected.map((weight, i) => (weight === 0 ? 0 : weight * exponents[i]!)));
      expect(Math.abs(results.moment - moment)).toBeLessThan(1e-10 * (1 + Math.abs(moment)));
      expect(results.present).toBe(sum(present));
      expect(results.squares).toBeCloseTo(sum(present.map((value) => (value - asked.center) ** 2)), 6);
      const heavy = Array.from(values).filter((_, i) => expected[i]! >= asked.weight);
      expect(results.least).toBe(Math.min(...heavy));
      const keeps = (value: number) => value >= asked.low && value <= asked.high;
      expect(between).toEqual(Array.from(values, (value) => (keeps(value) ? value : -Infinity)));
      expect(results.between).toBe(Array.from(values).filter(keeps).length);
      // The weights are those that the second sum left: what is not kept weighs nothing.
      const wrong = weights.filter((weight, i) => {
        const wanted = keeps(values[i]!) ? expected[i]! : 0;
        return !(Math.abs(weight - wanted) <= 1e-15 * wanted);
      });
      expect(wrong).toEqual([]);
      expect(results.kept).toBeCloseTo(sum(weights), 10);
      expect(sum(blockSums)).toBeCloseTo(results.kept, 10);
      const distances = Array.from(values, (value) => Math.abs(asked.center - (value - asked.maximum)));
      const octaves = distances.map((distance) => {
        if (distance === Infinity) return NUM_BUCKETS / PER_OCTAVE;
        return distance === 0 ? 0 : 48 + Math.floor(Math.log2(distance));
      });
      expect(buckets.map((bucket) => Math.floor(bucket / PER_OCTAVE))).toEqual(octaves);
      const byDistance = distances.map((_, i) => i).sort((a, b) => distances[a]! - distances[b]!);
      const ordered = byDistance.map((i) => buckets[i]!);
      expect(ordered).toEqual(ordered.toSorted((a, b) => a - b));
      expect(left).toEqual(Array.from(values, (value, i) => (buckets[i]! <= asked.last ? value : -Infinity)));
      expect(results.inBuckets).toBe(left.filter((value) => value > -Infinity).length);
    }
  });

  it('gives the bits of every other table', () => {
    for (const n of SIZES) {
      const values = rowOf(n, 6);
      expect(passes(table, values, Math.LOG2E)).toEqual(passes(tables[0]!, values, Math.LOG2E));
    }
  });
});
