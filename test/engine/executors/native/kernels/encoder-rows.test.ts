import { describe, expect, it } from 'vitest';
import {
  DTYPES,
  type Dtype,
  expectSameBits,
  guarded,
  guardedRow,
  kernels,
  randomFloats,
  rowTables,
  storable,
  twins,
  weightsOf,
} from './kernel-hooks.js';

const SIZES = [1, 7, 8, 17, 33, 64, 384, 577];

function layerNorm(table: string, n: number, { factor = 1, offset = 0, biased = true } = {}) {
  const x = randomFloats(n, 1).map((value) => value * factor + offset);
  const w = randomFloats(n, 2);
  const bias = biased ? randomFloats(n, 3) : null;
  const epsilon = 1e-12;
  const y = guarded(1, n, n);
  kernels.layerNorm(table, {
    x: guardedRow(x),
    w: guardedRow(w),
    bias: bias && guardedRow(bias),
    epsilon,
    n,
    y: y.view,
  });
  expect(y.guardsIntact()).toBe(true);
  const mean = x.reduce((sum, value) => sum + value, 0) / n;
  const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / n;
  const expected = Array.from(
    x,
    (value, i) => ((value - mean) / Math.sqrt(variance + epsilon)) * w[i]! + (bias?.[i] ?? 0),
  );
  return { y: y.row(0), expected };
}

function meanRows(table: string, n: number, rows: number) {
  const x = randomFloats(n * rows, 4);
  const y = guarded(1, n, n);
  kernels.meanRows(table, { x: guardedRow(x), rows, n, y: y.view });
  expect(y.guardsIntact()).toBe(true);
  const expected = Array.from({ length: n }, (_, i) => {
    let sum = 0;
    for (let row = 0; row < rows; row++) sum += x[row * n + i]!;
    return sum / rows;
  });
  return { y: y.row(0), expected };
}

function unitRow(table: string, x: Float32Array) {
  const n = x.length;
  const y = guarded(1, n, n);
  kernels.unitRow(table, { x: guardedRow(x), n, y: y.view });
  expect(y.guardsIntact()).toBe(true);
  const norm = Math.max(1e-12, Math.hypot(...x));
  return { y: y.row(0), expected: Array.from(x, (value) => value / norm) };
}

function addEmbeddingRow(table: string, wanted: number, dtype: Dtype) {
  const n = storable(dtype, wanted);
  const { stored, exact } = weightsOf(dtype, 1, n, 7);
  const before = randomFloats(n, 8);
  const y = guarded(1, n, n, before);
  kernels.addEmbeddingRow(table, { dtype, row: stored, n, y: y.view });
  expect(y.guardsIntact()).toBe(true);
  return { y: y.row(0), expected: Float32Array.from(before, (value, i) => value + exact[i]!) };
}

function expectNear(actual: Float32Array, expected: readonly number[], most: number): void {
  for (const [i, wanted] of expected.entries()) {
    expect(Math.abs(actual[i]! - wanted), `entry ${i} of ${expected.length}`).toBeLessThan(
      most * (1 + Math.abs(wanted)),
    );
  }
}

describe.each(rowTables)('rows of encoders, %s', (table) => {
  it('normalises by mean and deviation', () => {
    for (const n of SIZES.slice(1)) {
      for (const shape of [{}, { factor: 300 }, { offset: 5 }, { biased: false }]) {
        const { y, expected } = layerNorm(table, n, shape);
        expectNear(y, expected, 'offset' in shape ? 2e-5 : 2e-6);
      }
    }
  });

  it('gives the bias alone where there is no deviation', () => {
    const { y, expected } = layerNorm(table, 1);
    expectNear(y, expected, 1e-6);
  });

  it('takes the mean of any number of rows', () => {
    for (const n of SIZES) {
      for (const rows of [1, 2, 33, 256]) {
        const { y, expected } = meanRows(table, n, rows);
        expectNear(y, expected, 1e-6);
      }
    }
  });

  it('gives a row the length 1, and leaves one of zeros at zero', () => {
    for (const n of SIZES) {
      const { y, expected } = unitRow(table, randomFloats(n, 5));
      expectNear(y, expected, 1e-6);
    }
    expect([...unitRow(table, new Float32Array(9)).y]).toEqual(new Array(9).fill(0));
  });

  it('adds a row of a table of every format exactly', () => {
    for (const n of SIZES) {
      for (const dtype of DTYPES) {
        const { y, expected } = addEmbeddingRow(table, n, dtype);
        expectSameBits(y, expected, () => `${dtype}, ${n} values`);
      }
    }
  });
});

it.each(twins)('rows of encoders, %s gives the bits of %s', (vector, scalar) => {
  for (const n of SIZES) {
    expectSameBits(layerNorm(vector, n).y, layerNorm(scalar, n).y, () => `norm of ${n}`);
    expectSameBits(meanRows(vector, n, 5).y, meanRows(scalar, n, 5).y, () => `mean of ${n}`);
    const x = randomFloats(n, 6);
    expectSameBits(unitRow(vector, x).y, unitRow(scalar, x).y, () => `unit row of ${n}`);
  }
});
