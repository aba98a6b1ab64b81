import { describe, expect, it } from 'vitest';
import { roundedActivations } from '../../../../../tools/support/quantized.js';
import { isShort } from '../../../../support/scale.js';
import {
  DTYPES,
  type Dtype,
  dtypesOf,
  expectSameBits,
  fromBf16,
  gemmTables,
  guarded,
  guardedRow,
  isEmulated,
  isQuantized,
  kernels,
  multipliesTiles,
  productTables,
  randomFloats,
  sharedWeights,
  storable,
  toBf16,
  twins,
  weightsOf,
  weightsOfTiles,
} from './kernel-hooks.js';

/** Outputs and inner dimension: odd ones, and those around a panel's and a vector's width. */
const SIZES = [
  [1, 1],
  [7, 17],
  [17, 7],
  [33, 33],
  [64, 40],
  [65, 1],
] as const;

const ACTIVATIONS: ((x: number) => number)[] = [
  (x) => x,
  (x) => x / (1 + Math.exp(-x)),
  (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  Math.tanh,
  (x) => Math.max(0, x),
  (x) => Math.max(0, x) ** 2,
];

/** The series of erf in double precision; beyond 4 it cancels, and erf is 1 to 2e-8. */
function erf(x: number): number {
  if (Math.abs(x) > 4) return Math.sign(x);
  let term = x;
  let sum = x;
  for (let n = 1; n < 200; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

const SHORT_COUNTS = [1, 3, 4, 7, 17, 48];
const MAX_ROWS = isShort ? 48 : 66;
/** Numbers of rows around the borders of one to three tiles; what lies between takes the same paths, and blocks of rows have a test of their own. */
const countsOf = (tileRows: number) => {
  const borders = [1, 2, 3].flatMap((tiles) => [-1, 0, 1].map((beside) => tiles * tileRows + beside));
  return [...new Set([1, 2, 3, 4, ...borders, 65])];
};

/** All tables of tiles have the same weights: see below. */
const quickestTiles =
  productTables.find((table) => table === 'amx' || table === 'emulatedamxvectors') ?? 'emulatedamx';

interface Problem {
  rows: number;
  n: number;
  k: number;
  dtype: Dtype;
  activation?: number;
  gated?: boolean;
  bias?: boolean;
  residual?: 'own' | 'output';
}

/** The fields of `rows` rows of x, `ldx` apart: x itself or, where the weights want it rounded, never that. */
function inputOf(table: string, dtype: Dtype, x: Float32Array, ldx: number, rows: number, k: number) {
  const rounded = kernels.round(table, { dtype, x, ldx, k, rows });
  return rounded.length === 0 ? { x } : { rounded, roundedRows: rows };
}

/** Inputs with NaN around every row of theirs, and a way to run any part of the product into a fresh output. */
function problemOf(table: string, given: Problem) {
  const p = { ...given, k: storable(given.dtype, given.k) };
  const parts = p.gated ? 2 : 1;
  const { stored, exact: asStored } = sharedWeights(p.dtype, parts * p.n, p.k);
  const byTiles = isQuantized(p.dtype) && multipliesTiles(table);
  const exact = byTiles ? weightsOfTiles(quickestTiles, p.dtype, parts * p.n, p.k) : asStored;
  const input = randomFloats(p.rows * p.k, 5);
  const bias = p.bias === false ? null : randomFloats(parts * p.n, 7);
  const before = randomFloats(p.rows * p.n, 9);
  const residual = guarded(p.rows, p.n, p.n + 9, randomFloats(p.rows * p.n, 11));
  const packed = kernels.pack(table, { dtype: p.dtype, w: stored, n: p.n, k: p.k, gated: p.gated ? 1 : 0 });
  const panels = Math.ceil(p.n / kernels.shape(table).panelWidth);
  const x = guarded(p.rows, p.k, p.k + 3, input);
  const source = inputOf(table, p.dtype, x.view, p.k + 3, p.rows, p.k);
  const seen = (r: number) => {
    const row = input.subarray(r * p.k, (r + 1) * p.k);
    if (isQuantized(p.dtype) && !byTiles) return roundedActivations(row, p.dtype);
    return 'rounded' in source ? fromBf16(toBf16(row)) : row;
  };
  const output = () => guarded(p.rows, p.n, p.n + 5, before);
  const run = (rowBegin = 0, rowEnd = p.rows, panelBegin = 0, panelEnd = panels, y = output()) => {
    const added = { own: residual.view, output: y.view, none: null }[p.residual ?? 'none'];
    kernels[p.gated ? 'gatedGemm' : 'gemm'](table, {
      ...source,
      ldx: p.k + 3,
      packed,
      dtype: p.dtype,
      n: p.n,
      k: p.k,
      bias: bias && guardedRow(bias),
      residual: added,
      ldr: p.residual === 'own' ? p.n + 9 : p.n + 5,
      y: y.view,
      ldy: p.n + 5,
      activation: p.activation ?? 0,
      rowBegin,
      rowEnd,
      panelBegin,
      panelEnd,
    });
    return y;
  };
  const rows = Array.from({ length: p.rows }, (_, r) => seen(r));
  const expected = (r: number, j: number) => {
    const dot = (line: number) => {
      let sum = bias ? bias[line]! : 0;
      for (let i = 0; i < p.k; i++) sum += rows[r]![i]! * exact[line * p.k + i]!;
      return sum;
    };
    const value = ACTIVATIONS[p.activation ?? 0]!(dot(j)) * (p.gated ? dot(p.n + j) : 1);
    if (!p.residual) return value;
    return value + (p.residual === 'own' ? residual.row(r)[j]! : before[r * p.n + j]!);
  };
  /** Each row by itself, into one output. */
  const runAlone = () => {
    const y = output();
    for (let r = 0; r < p.rows; r++) run(r, r + 1, 0, panels, y);
    return y;
  };
  return { run, runAlone, expected, panels };
}

describe.each(gemmTables.filter(multipliesTiles))('weights of tiles, %s', (table) => {
  it.each(dtypesOf(table).filter(isQuantized))('are what they stand for, cut to bf16, %s', (dtype) => {
    const [n, k] = [70, storable(dtype, 300)];
    const { exact } = sharedWeights(dtype, n, k);
    const greatest = exact.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0);
    let error = 0;
    for (const [i, weight] of weightsOfTiles(table, dtype, n, k).entries()) {
      const [is, wanted] = [Math.abs(weight), Math.abs(exact[i]!)];
      expect(new Uint32Array(Float32Array.of(weight).buffer)[0]! & 0xffff).toBe(0);
      // A unit of the last place lower, or a greater number by less than a unit. Scales are rounded before quants are multiplied.
      const near = 2 ** -12 * greatest;
      if (is < wanted * (1 - 2 ** -7) - near || is > wanted * (1 + 2 ** -8) + near)
        throw new Error(`weight ${i} is ${weight}, for ${exact[i]}`);
      error += (is - wanted) / greatest;
    }
    expect(Math.abs(error / (n * k))).toBeLessThan(2e-4);
  });
});

describe.each(gemmTables)('GEMM, %s', (table) => {
  const dtypes = dtypesOf(table);
  const { tileRows, panelWidth } = kernels.shape(table);

  it.each(dtypes)('agrees with a double precision product and stays inside, %s', (dtype) => {
    const extras = [
      { gated: true },
      { gated: true, bias: false },
      { residual: 'own' },
      { residual: 'output' },
      { bias: false },
    ] as const;
    // A row has the same bits in any other number of rows: see below.
    for (const [n, k] of SIZES)
      for (const rows of [1, tileRows + 1])
        for (const i of [0, 2]) {
          // Two of the extras each: every one meets sizes and both numbers of rows.
          const extra = extras[(i + 3 * n + (rows === 1 ? 0 : 1)) % extras.length]!;
          const activation = (rows + i + n) % ACTIVATIONS.length;
          const problem = problemOf(table, { rows, n, k, dtype, activation, ...extra });
          const y = problem.run();
          expect(y.guardsIntact()).toBe(true);
          let worst = 0;
          for (let r = 0; r < rows; r++)
            for (let j = 0; j < n; j++) {
              const wanted = problem.expected(r, j);
              const error = Math.abs(y.row(r)[j]! - wanted) / (1 + Math.abs(wanted));
              if (!(error <= worst)) worst = error; // NaN counts
            }
          expect(worst).toBeLessThan(2e-5);
        }
  });

  it.each(dtypes)('gives every activation its values, %s', (dtype) => {
    for (const activation of ACTIVATIONS.keys())
      for (const gated of [false, true]) {
        const problem = problemOf(table, { rows: 5, n: 35, k: 60, dtype, activation, gated });
        const y = problem.run();
        for (let r = 0; r < 5; r++)
          for (let j = 0; j < 35; j++) {
            const wanted = problem.expected(r, j);
            if (!(Math.abs(y.row(r)[j]! - wanted) < 2e-5 * (1 + Math.abs(wanted))))
              throw new Error(`activation ${activation}, gated ${gated}: ${y.row(r)[j]} for ${wanted}`);
          }
      }
  });

  it.each(dtypes)('gives a row the same bits in every number of rows, %s', (dtype) => {
    const counts = isShort ? SHORT_COUNTS : countsOf(tileRows);
    for (const gated of [false, true]) {
      const problem = { rows: MAX_ROWS, n: 75, k: 23, dtype, activation: 1, gated } as const;
      const most = problemOf(table, gated ? problem : { ...problem, residual: 'output' });
      const alone = most.runAlone();
      for (const [i, count] of counts.entries())
        for (const begin of [i % 2 === 0 ? 0 : MAX_ROWS - count, (count * 7) % (MAX_ROWS + 1 - count)]) {
          const y = most.run(begin, begin + count);
          for (let r = begin; r < begin + count; r++)
            expectSameBits(
              y.row(r),
              alone.row(r),
              () => `row ${r} of ${begin}..${begin + count}, gated ${gated}`,
            );
        }
    }
  });

  it.each(dtypes)(
    'gives the same bits where rows and inner dimension pass every block of the kernel, %s',
    (dtype) => {
      const rows = isEmulated(table) ? 50 : 128;
      for (const gated of [false, true]) {
        const problem = problemOf(table, { rows, n: panelWidth + 1, k: 1999, dtype, gated });
        const whole = problem.run();
        for (let r = 0; r < rows; r += isEmulated(table) ? 24 : 9)
          expectSameBits(whole.row(r), problem.run(r, r + 1).row(r), () => `row ${r}, gated ${gated}`);
      }
    },
  );

  it.each(dtypes.filter((dtype) => dtype !== 'f32'))(
    'gives the same bits however the panels are split, and writes only its own, %s',
    (dtype) => {
      const n = 6 * panelWidth + 11;
      for (const gated of [false, true])
        for (const rows of [1, 3]) {
          const problem = problemOf(table, { rows, n, k: 19, dtype, gated });
          const whole = problem.run();
          const untouched = problem.run(0, 0);
          for (let begin = 0; begin < problem.panels; begin++)
            for (let end = begin + 1; end <= problem.panels; end++) {
              const part = problem.run(0, rows, begin, end);
              for (let r = 0; r < rows; r++) {
                const wanted = untouched.row(r).slice();
                const inside = whole.row(r).subarray(begin * panelWidth, end * panelWidth);
                wanted.set(inside, begin * panelWidth);
                expectSameBits(
                  part.row(r),
                  wanted,
                  () => `row ${r}, panels ${begin}..${end}, gated ${gated}`,
                );
              }
            }
        }
    },
  );

  it.each(dtypes)('takes a NaN or an infinity of one row to no other row, and swallows none, %s', (dtype) => {
    const [n, k, rows] = [40, storable(dtype, 70), 12];
    const { stored } = weightsOf(dtype, n, k, 1);
    const packed = kernels.pack(table, { dtype, w: stored, n, k, gated: 0 });
    const x = randomFloats(k * rows, 2);
    x[k * 4] = Number.NaN;
    x[k * 6 + 69] = Number.POSITIVE_INFINITY;
    x[k * 9 + 40] = Number.NEGATIVE_INFINITY;
    const y = new Float32Array(rows * n);
    const source = inputOf(table, dtype, x, k, rows, k);
    const shape = { dtype, n, k, bias: null, residual: null, ldr: 0, activation: 0 };
    const range = { rowBegin: 0, rowEnd: rows, panelBegin: 0, panelEnd: Math.ceil(n / panelWidth) };
    kernels.gemm(table, { ...shape, ...range, ...source, ldx: k, packed, y, ldy: n });
    for (let i = 0; i < y.length; i++)
      if (Number.isFinite(y[i]!) === [4, 6, 9].includes(Math.floor(i / n)))
        throw new Error(`row ${Math.floor(i / n)}: ${y[i]}`);
  });
});

it.each(twins)('GEMM, %s gives the bits of %s', (vector, scalar) => {
  // An activation is applied to what a row has been summed to, whatever the rows: all of them once, and each number of rows with some.
  for (const dtype of isShort ? (['bf16'] as const) : DTYPES)
    for (const [i, rows] of (isShort ? [1, 2, 3, 6, 7] : [1, 2, 3, 4, 5, 6, 7, 13]).entries())
      for (const activation of rows === 1 ? ACTIVATIONS.keys() : [i % ACTIVATIONS.length])
        for (const gated of [false, true]) {
          const problem = { rows, n: 75, k: 77, dtype, activation, gated };
          const [actual, wanted] = [problemOf(vector, problem).run(), problemOf(scalar, problem).run()];
          for (let r = 0; r < rows; r++)
            expectSameBits(actual.row(r), wanted.row(r), () => `row ${r} of ${JSON.stringify(problem)}`);
        }
});

it.each(twins)(
  'GEMM, %s gives the bits of %s with any scales of mxfp4 and groups of zeros',
  (vector, scalar) => {
    const [rows, n, k] = [7, 75, 96];
    const x = randomFloats(rows * k, 5);
    x.fill(0, 3 * k + 32, 3 * k + 64);
    x.fill(0, 5 * k, 6 * k);
    // Exponents whose scales all are added to those of multiples, the ends of these, and some beyond.
    for (const exponents of [
      [120, 127, 128],
      [2, 127, 128, 223],
      [0, 1, 2, 127, 226],
    ]) {
      const stored = weightsOf('mxfp4', n, k, 3).stored.slice() as Uint8Array;
      for (let block = 0; block * 17 < stored.length; block++)
        stored[block * 17] = exponents[(block * 7) % exponents.length]!;
      const productOf = (table: string) => {
        const y = new Float32Array(rows * n);
        const packed = kernels.pack(table, { dtype: 'mxfp4', w: stored, n, k, gated: 0 });
        const range = {
          rowBegin: 0,
          rowEnd: rows,
          panelBegin: 0,
          panelEnd: Math.ceil(n / kernels.shape(table).panelWidth),
        };
        const source = inputOf(table, 'mxfp4', x, k, rows, k);
        kernels.gemm(table, {
          ...range,
          ...source,
          dtype: 'mxfp4',
          n,
          k,
          ldx: k,
          packed,
          y,
          ldy: n,
          activation: 0,
        });
        return y;
      };
      const [actual, wanted] = [productOf(vector), productOf(scalar)];
      expect(wanted.every(Number.isFinite)).toBe(true);
      expectSameBits(actual, wanted, () => `exponents ${exponents}`);
    }
  },
);
