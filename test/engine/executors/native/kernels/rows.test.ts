import { describe, expect, it } from 'vitest';
import { xielu } from '../../../../support/naive-network.js';
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

const SIZES = [1, 7, 8, 17, 33, 64, 576, 577];

function rmsNorm(table: string, n: number, factor = 1) {
  const x = randomFloats(n, 1).map((value) => value * factor);
  const w = randomFloats(n, 2);
  const epsilon = 1e-5;
  const y = guarded(1, n, n);
  kernels.rmsNorm(table, { x: guardedRow(x), w: guardedRow(w), epsilon, n, y: y.view });
  expect(y.guardsIntact()).toBe(true);
  const squares = x.reduce((sum, value) => sum + value * value, 0);
  const inverse = 1 / Math.sqrt(squares / n + epsilon);
  return { y: y.row(0), expected: Array.from(x, (value, i) => value * inverse * w[i]!) };
}

/** A row changed in place. */
function inPlace(
  table: string,
  kernel: 'scaleRow' | 'softCapRow' | 'xieluRow',
  n: number,
  fields: object,
  factor = 1,
) {
  const before = randomFloats(n, 4).map((value) => value * factor);
  const x = guarded(1, n, n, before);
  kernels[kernel](table, { x: x.view, n, ...fields });
  expect(x.guardsIntact()).toBe(true);
  return { x: x.row(0), before };
}

/** Numbers that Apertus might have. */
const XIELU = { alphaPositive: 0.83, alphaNegative: 1.21, beta: 0.5, epsilon: -1e-6 };

/** Into the residual itself, as the sum of a layer is written. */
function addedNorm(table: string, n: number) {
  const y = guarded(1, n, n, randomFloats(n, 5));
  const fields = { x: guardedRow(randomFloats(n, 1)), w: guardedRow(randomFloats(n, 2)), epsilon: 1e-5, n };
  kernels.rmsNorm(table, { ...fields, residual: y.view, y: y.view });
  expect(y.guardsIntact()).toBe(true);
  return y.row(0);
}

function embeddingRow(table: string, wanted: number, dtype: Dtype) {
  const n = storable(dtype, wanted);
  const { stored, exact } = weightsOf(dtype, 1, n, 7);
  const y = guarded(1, n, n);
  kernels.embeddingRow(table, { dtype, row: stored, n, y: y.view });
  expect(y.guardsIntact()).toBe(true);
  return { y: y.row(0), expected: exact };
}

function ropeAngles(table: string, half: number, position: number, scale: number) {
  const inverseFrequencies = Float32Array.from({ length: half }, (_, i) => 10000 ** (-i / half));
  const [cosine, sine] = [guarded(1, half, half), guarded(1, half, half)];
  const fields = { inverseFrequencies: guardedRow(inverseFrequencies), half, scale, position };
  kernels.ropeAngles(table, { ...fields, cosine: cosine.view, sine: sine.view });
  expect(cosine.guardsIntact() && sine.guardsIntact()).toBe(true);
  // The angle is the f32 product, as in the reference; from there on doubles.
  const angles = Array.from(inverseFrequencies, (f) => Math.fround(position * f));
  return { cosine: cosine.row(0), sine: sine.row(0), angles };
}

/** Rotates the first 2 * half of each head's headDim values; the rest stays as it is. */
function rope(table: string, heads: number, headDim: number, half: number) {
  const before = randomFloats(heads * headDim, 3);
  const angles = Array.from({ length: half }, (_, i) => 0.1 + i * 0.37);
  const x = guarded(1, before.length, before.length, before);
  const cosine = Float32Array.from(angles, Math.cos);
  const sine = Float32Array.from(angles, Math.sin);
  const tables = { cosine: guardedRow(cosine), sine: guardedRow(sine) };
  kernels.rope(table, { x: x.view, heads, headDim, half, ...tables });
  expect(x.guardsIntact()).toBe(true);
  const expected = Array.from(before, (value, at) => {
    const d = at % headDim;
    if (d < half) return value * cosine[d]! - before[at + half]! * sine[d]!;
    if (d < 2 * half) return value * cosine[d - half]! + before[at - half]! * sine[d - half]!;
    return value;
  });
  return { x: x.row(0), expected };
}

const ROPE_SHAPES = [
  [1, 2, 1],
  [3, 24, 12],
  [2, 64, 32],
  [2, 80, 20],
  [12, 64, 32],
  [1, 40, 17],
] as const;

describe.each(rowTables)('rows, %s', (table) => {
  it('normalises by the root of the mean square', () => {
    for (const n of SIZES)
      for (const factor of [1, 1e-4, 300]) {
        const { y, expected } = rmsNorm(table, n, factor);
        expected.forEach((wanted, i) => {
          expect(Math.abs(y[i]! - wanted)).toBeLessThan(1e-6 * (1 + Math.abs(wanted)));
        });
      }
  });

  it('adds the residual to what is normed', () => {
    for (const n of SIZES) {
      const { y } = rmsNorm(table, n);
      const residual = randomFloats(n, 5);
      expectSameBits(
        addedNorm(table, n),
        y.map((value, i) => Math.fround(value + residual[i]!)),
        () => `${n}`,
      );
    }
  });

  it('scales a row', () => {
    for (const n of SIZES) {
      const { x, before } = inPlace(table, 'scaleRow', n, { factor: 6.9282 });
      expectSameBits(
        x,
        before.map((value) => value * Math.fround(6.9282)),
        () => `${n}`,
      );
    }
  });

  it('caps a row softly, and keeps NaN', () => {
    for (const n of SIZES)
      for (const factor of [1e-3, 1, 40, 1e6]) {
        const { x, before } = inPlace(table, 'softCapRow', n, { cap: 30 }, factor);
        before.forEach((value, i) => {
          expect(Math.abs(x[i]! - 30 * Math.tanh(value / 30))).toBeLessThan(1e-5);
        });
      }
    expect(inPlace(table, 'softCapRow', 9, { cap: 2 }, Number.NaN).x.every(Number.isNaN)).toBe(true);
  });

  it('bends a row as xIELU does, near 0 and far from it, and keeps NaN', () => {
    for (const n of SIZES)
      for (const factor of [1e-4, 1, 40, 1e4]) {
        const { x, before } = inPlace(table, 'xieluRow', n, XIELU, factor);
        before.forEach((value, i) => {
          const wanted = xielu(value, XIELU);
          expect(Math.abs(x[i]! - wanted)).toBeLessThanOrEqual(5e-7 * (Math.abs(value) + value ** 2));
        });
      }
    expect(inPlace(table, 'xieluRow', 9, XIELU, Number.NaN).x.every(Number.isNaN)).toBe(true);
  });

  it('reads an embedding row exactly', () => {
    for (const n of SIZES)
      for (const dtype of DTYPES) {
        const { y, expected } = embeddingRow(table, n, dtype);
        expectSameBits(y, expected, () => `${dtype}, ${n} values`);
      }
  });

  it('makes the cosine and sine of angles up to 100000 exact to f32', () => {
    for (const half of [1, 7, 16, 32, 33])
      for (const position of [0, 1, 2, 511, 8191, 99_999, 100_000]) {
        const { cosine, sine, angles } = ropeAngles(table, half, position, 1);
        angles.forEach((angle, i) => {
          expect(Math.abs(cosine[i]! - Math.cos(angle))).toBeLessThan(6e-8);
          expect(Math.abs(sine[i]! - Math.sin(angle))).toBeLessThan(6e-8);
        });
      }
  });

  it('scales cosine and sine', () => {
    const { cosine, sine, angles } = ropeAngles(table, 9, 123, 1.5);
    angles.forEach((angle, i) => {
      expect(cosine[i]).toBe(Math.fround(1.5 * Math.fround(Math.cos(angle))));
      expect(sine[i]).toBe(Math.fround(1.5 * Math.fround(Math.sin(angle))));
    });
  });

  it('rotates pairs half a rotation apart and leaves the other dimensions alone', () => {
    for (const [heads, headDim, half] of ROPE_SHAPES) {
      const { x, expected } = rope(table, heads, headDim, half);
      expected.forEach((wanted, i) => {
        if (i % headDim >= 2 * half) expect(x[i]).toBe(wanted);
        else expect(Math.abs(x[i]! - wanted)).toBeLessThan(2e-7);
      });
    }
  });
});

it.each(twins)('rows, %s gives the bits of %s', (vector, scalar) => {
  for (const n of SIZES) {
    expectSameBits(rmsNorm(vector, n).y, rmsNorm(scalar, n).y, () => `norm of ${n}`);
    expectSameBits(addedNorm(vector, n), addedNorm(scalar, n), () => `added norm of ${n}`);
    const capped = (table: string) => inPlace(table, 'softCapRow', n, { cap: 3 }, 5).x;
    expectSameBits(capped(vector), capped(scalar), () => `soft cap of ${n}`);
    const bent = (table: string) => inPlace(table, 'xieluRow', n, XIELU, 5).x;
    expectSameBits(bent(vector), bent(scalar), () => `xIELU of ${n}`);
    for (const dtype of DTYPES)
      expectSameBits(
        embeddingRow(vector, n, dtype).y,
        embeddingRow(scalar, n, dtype).y,
        () => `embedding of ${n}`,
      );
  }
  for (let position = 0; position <= 100_000; position += 4321) {
    const [a, b] = [ropeAngles(vector, 33, position, 1.25), ropeAngles(scalar, 33, position, 1.25)];
    expectSameBits(a.cosine, b.cosine, () => `cosine at ${position}`);
    expectSameBits(a.sine, b.sine, () => `sine at ${position}`);
  }
  for (const [heads, headDim, half] of ROPE_SHAPES)
    expectSameBits(
      rope(vector, heads, headDim, half).x,
      rope(scalar, heads, headDim, half).x,
      () => `rope ${headDim}`,
    );
});
