import { describe, expect, it } from 'vitest';
import { greatestError } from '../../../../support/naive-network.js';
import { naiveScan } from '../../../../support/naive-scan.js';
import { bitsOf, expectSameBits, guarded, kernels, randomFloats, tables } from './kernel-hooks.js';

const ROWS = 9;

interface ScanShape {
  headDim: number;
  stateDim: number;
  /** Greatest step of a token before its bias. Default: 4. */
  spread?: number;
  leastStep?: number;
  mostStep?: number;
}

/** The third of four heads, which is the first of the second group; its state begins as random numbers. */
function scan(table: string, shape: ScanShape, cuts: readonly number[] = []) {
  const { headDim, stateDim, spread = 4, leastStep = 0, mostStep = Number.POSITIVE_INFINITY } = shape;
  const [heads, groups, head] = [4, 2, 2];
  const width = heads * headDim + 2 * groups * stateDim;
  const places = { head: head * headDim, b: heads * headDim + stateDim };
  const c = places.b + groups * stateDim;
  const input = randomFloats(ROWS * width, 1);
  const steps = randomFloats(ROWS * heads, 2).map((value) => spread * value);
  const first = randomFloats(stateDim * headDim, 3);
  const state = guarded(1, first.length, first.length, first);
  const stride = headDim + 5;
  const y = guarded(ROWS, headDim, stride);
  const numbers = { rate: -0.6, stepBias: -0.7, skip: 1.3, leastStep, mostStep };
  const fields = {
    ...places,
    c,
    ...numbers,
    x: guarded(ROWS, width, width, input).view,
    ldx: width,
    steps: guarded(ROWS, heads, heads, steps).view.subarray(head),
    ldsteps: heads,
    headDim,
    stateDim,
    state: state.view,
    y: y.view,
    ldy: stride,
  };
  const parts = [0, ...cuts, ROWS];
  for (let i = 1; i < parts.length; i++)
    kernels.selectiveScan(table, { ...fields, begin: parts[i - 1]!, end: parts[i]! });
  expect(y.guardsIntact() && state.guardsIntact()).toBe(true);
  const row = (t: number, at: number, length: number) =>
    input.subarray(t * width + at, t * width + at + length);
  const tokens = Array.from({ length: ROWS }, (_, t) => ({
    x: row(t, places.head, headDim),
    b: row(t, places.b, stateDim),
    c: row(t, c, stateDim),
    step: steps[t * heads + head]!,
  }));
  const rows = Array.from({ length: ROWS }, (_, t) => y.row(t));
  return { rows, state: state.row(0), first, tokens, numbers };
}

const SHAPES: readonly ScanShape[] = [
  ...[1, 7, 8, 12, 16, 33, 64, 65, 128].map((headDim, i) => ({
    headDim,
    stateDim: [1, 8, 9, 16, 31][i % 5]!,
  })),
  { headDim: 64, stateDim: 128 },
  // States that are forgotten at once, or kept whole; and steps that are limited on both sides.
  { headDim: 17, stateDim: 16, spread: 300 },
  { headDim: 10, stateDim: 5, leastStep: 0.3, mostStep: 0.8 },
];

const joined = (rows: readonly Float32Array[]) => Float32Array.from(rows.flatMap((row) => [...row]));

describe.each(tables)('a selective scan, %s', (table) => {
  it('is that of double precision', () => {
    for (const shape of SHAPES) {
      const found = scan(table, shape);
      const state = Float64Array.from(found.first);
      const rows = naiveScan(found.tokens, found.numbers, state);
      // Steps of 300 make states of hundreds.
      const most = 1e-5 * Math.max(1, ...state.map(Math.abs));
      expect(greatestError(found.rows, rows), JSON.stringify(shape)).toBeLessThan(most);
      expect(greatestError([found.state], [state]), JSON.stringify(shape)).toBeLessThan(most);
    }
  });

  it('gives the same bits whole and in chunks, and those of the first table', () => {
    for (const shape of SHAPES) {
      const whole = scan(table, shape);
      for (const cuts of [[1], [4], [2, 3, 8], [1, 2, 3, 4, 5, 6, 7, 8]]) {
        const parts = scan(table, shape, cuts);
        const place = () => `${JSON.stringify(shape)} cut at ${cuts}`;
        expectSameBits(joined(parts.rows), joined(whole.rows), place);
        expectSameBits(parts.state, whole.state, place);
      }
      const first = scan(tables[0]!, shape);
      expect(bitsOf(joined(whole.rows)), JSON.stringify(shape)).toEqual(bitsOf(joined(first.rows)));
      expect(bitsOf(whole.state), JSON.stringify(shape)).toEqual(bitsOf(first.state));
    }
  });

  it('keeps what is not finite, and no more', () => {
    const [state, y] = [new Float32Array(2), new Float32Array(4)];
    // Two heads of one column are one head of two: x, B, C of two tokens.
    const x = Float32Array.of(Number.NaN, 1, 1, 1, 1, 1, 0, 1);
    const places = { head: 0, b: 2, c: 3, ldx: 4, ldsteps: 1, headDim: 2, stateDim: 1, ldy: 2 };
    const numbers = { rate: -1, stepBias: 0, skip: 1, leastStep: 0, mostStep: 1e30, begin: 0, end: 2 };
    kernels.selectiveScan(table, { ...places, ...numbers, x, steps: new Float32Array(2), state, y });
    expect([...y, ...state].map(Number.isNaN)).toEqual([true, false, true, false, true, false]);
    const steps = Float32Array.of(Number.NaN);
    const limited = { ...numbers, mostStep: 1, end: 1 };
    kernels.selectiveScan(table, {
      ...places,
      ...limited,
      x: new Float32Array(4),
      steps,
      state: new Float32Array(2),
      y,
    });
    expect([...y.subarray(0, 2)].every(Number.isNaN)).toBe(true);
  });
});
