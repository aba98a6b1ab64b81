import { describe, expect, it } from 'vitest';
import { naiveDelta } from '../../../../support/naive-delta.js';
import { activate, greatestError } from '../../../../support/naive-network.js';
import {
  bitsOf,
  expectSameBits,
  guarded,
  guardedRow,
  kernels,
  randomFloats,
  rowTables,
  tables,
  twins,
} from './kernel-hooks.js';

/** Numbers of the enum Activation. */
const ACTIVATIONS = [
  [0, 'none'],
  [1, 'silu'],
  [7, 'sigmoid'],
] as const;
const WIDTHS = [1, 7, 8, 12, 16, 33, 64, 65, 128];
const ROWS = 9;

function gateRow(table: string, n: number, activation: number) {
  const before = randomFloats(n, 1);
  const by = randomFloats(n, 2).map((value) => 6 * value);
  const x = guarded(1, n, n, before);
  kernels.gateRow(table, { x: x.view, by: guardedRow(by), activation, n });
  expect(x.guardsIntact()).toBe(true);
  return { x: x.row(0), before, by };
}

interface ConvShape {
  n: number;
  taps: number;
  activation: number;
  /** Rows of the sequence computed before, in the history. */
  earlier: number;
  biased: boolean;
}

/** A convolution of ROWS rows, cut where it is said; each part has the inputs before it as its history. */
function shortConv(table: string, shape: ConvShape, cuts: readonly number[] = []) {
  const { n, taps, activation, earlier, biased } = shape;
  const kept = taps - 1;
  const stride = n + 3;
  const inputs = randomFloats((earlier + ROWS) * n, 3);
  const weight = randomFloats(taps * n, 4);
  const bias = biased ? randomFloats(n, 5) : null;
  const x = guarded(ROWS, n, stride, inputs.subarray(earlier * n));
  const y = guarded(ROWS, n, stride);
  const parts = [0, ...cuts, ROWS];
  for (const [i, end] of parts.entries()) {
    const begin = parts[i - 1];
    if (begin === undefined) continue;
    const before = Array.from({ length: kept }, (_, place) => {
      const row = earlier + begin - kept + place;
      return row < 0 ? new Float32Array(n) : inputs.subarray(row * n, (row + 1) * n);
    });
    kernels.shortConv(table, {
      x: x.view.subarray(begin * stride),
      ldx: stride,
      history: earlier + begin === 0 ? null : guarded(kept, n, n, joined(before)).view,
      weight: guardedRow(weight),
      bias: bias && guardedRow(bias),
      taps,
      n,
      activation,
      y: y.view.subarray(begin * stride),
      ldy: stride,
      begin: 0,
      end: end - begin,
    });
  }
  expect(y.guardsIntact() && x.guardsIntact()).toBe(true);
  const rows = Array.from({ length: ROWS }, (_, row) => y.row(row));
  return { rows, inputs, weight, bias };
}

function joined(rows: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(rows.reduce((sum, row) => sum + row.length, 0));
  let at = 0;
  for (const row of rows) {
    all.set(row, at);
    at += row.length;
  }
  return all;
}

const CONVS: readonly ConvShape[] = WIDTHS.flatMap((n, i) => [
  { n, taps: 2 + (i % 4), activation: ACTIVATIONS[i % 3]![0], earlier: 0, biased: i % 2 === 0 },
  { n, taps: 4, activation: 1, earlier: 1 + (i % 5), biased: i % 2 === 1 },
]);

interface DeltaShape {
  keyDim: number;
  valueDim: number;
  /** Greatest b and a of a token. Default: 4. */
  spread?: number;
}

/** The second of three heads of values, whose queries and keys are the first of two; its state begins as random numbers. */
function gatedDelta(
  table: string,
  { keyDim, valueDim, spread = 4 }: DeltaShape,
  cuts: readonly number[] = [],
) {
  const [keyHeads, valueHeads, head] = [2, 3, 1];
  const width = 2 * keyHeads * keyDim + valueHeads * valueDim;
  const qkv = randomFloats(ROWS * width, 6);
  const gates = randomFloats(ROWS * 2 * valueHeads, 7).map((value) => spread * value);
  const first = randomFloats(keyDim * valueDim, 8);
  const state = guarded(1, first.length, first.length, first);
  const stride = valueDim + 5;
  const y = guarded(ROWS, valueDim, stride);
  const places = { query: 0, key: keyHeads * keyDim, value: 2 * keyHeads * keyDim + head * valueDim };
  const numbers = { decay: 0.4, decayBias: -0.7, epsilon: 1e-6 };
  const fields = {
    ...places,
    ...numbers,
    qkv: guarded(ROWS, width, width, qkv).view,
    ldqkv: width,
    gates: guarded(ROWS, 2 * valueHeads, 2 * valueHeads, gates).view.subarray(head),
    ldgates: 2 * valueHeads,
    valueHeads,
    keyDim,
    valueDim,
    state: state.view,
    y: y.view,
    ldy: stride,
  };
  const parts = [0, ...cuts, ROWS];
  for (let i = 1; i < parts.length; i++)
    kernels.gatedDelta(table, { ...fields, begin: parts[i - 1]!, end: parts[i]! });
  expect(y.guardsIntact() && state.guardsIntact()).toBe(true);
  const row = (t: number, at: number, length: number) =>
    qkv.subarray(t * width + at, t * width + at + length);
  const tokens = Array.from({ length: ROWS }, (_, t) => ({
    q: row(t, places.query, keyDim),
    k: row(t, places.key, keyDim),
    v: row(t, places.value, valueDim),
    b: gates[t * 2 * valueHeads + head]!,
    a: gates[t * 2 * valueHeads + valueHeads + head]!,
  }));
  const rows = Array.from({ length: ROWS }, (_, t) => y.row(t));
  return { rows, state: state.row(0), first, tokens, numbers };
}

const DELTAS: readonly DeltaShape[] = [
  ...WIDTHS.map((valueDim, i) => ({ keyDim: [8, 9, 16, 31, 64][i % 5]!, valueDim })),
  { keyDim: 128, valueDim: 128 },
  { keyDim: 1, valueDim: 3 },
  // States that are forgotten at once, or kept whole.
  { keyDim: 16, valueDim: 17, spread: 300 },
];

describe.each(rowTables)('layers that keep states, %s', (table) => {
  const expectNear = (found: ArrayLike<number>, wanted: ArrayLike<number>, most: number, place: string) =>
    expect(greatestError([found], [wanted]), place).toBeLessThan(most);

  it('multiply a row by the activation of another', () => {
    for (const n of WIDTHS)
      for (const [number, activation] of ACTIVATIONS) {
        const { x, before, by } = gateRow(table, n, number);
        const wanted = Array.from(before, (value, i) => value * activate(by[i]!, activation));
        expectNear(x, wanted, 2e-6, `${activation} of ${n}`);
      }
  });

  it('add up the last inputs of each column, those before the sequence as 0', () => {
    for (const shape of CONVS) {
      const { rows, inputs, weight, bias } = shortConv(table, shape);
      const { n, taps, earlier } = shape;
      const activation = ACTIVATIONS.find(([number]) => number === shape.activation)![1];
      for (const [row, found] of rows.entries())
        expectNear(
          found,
          Array.from(found, (_, column) => {
            let sum = bias?.[column] ?? 0;
            for (let tap = 0; tap < taps; tap++) {
              const at = earlier + row - taps + 1 + tap;
              if (at >= 0) sum += weight[tap * n + column]! * inputs[at * n + column]!;
            }
            return activate(sum, activation);
          }),
          2e-6,
          `row ${row} of ${JSON.stringify(shape)}`,
        );
    }
  });

  it('follow the gated delta rule', () => {
    for (const shape of DELTAS) {
      const found = gatedDelta(table, shape);
      const state = Float64Array.from(found.first);
      const rows = naiveDelta(found.tokens, found.numbers, state);
      expect(greatestError(found.rows, rows), JSON.stringify(shape)).toBeLessThan(3e-6);
      expectNear(found.state, state, 3e-6, JSON.stringify(shape));
    }
  });

  it('give the same bits whole and in chunks', () => {
    for (const cuts of [[1], [4], [2, 3, 8], [1, 2, 3, 4, 5, 6, 7, 8]]) {
      for (const shape of CONVS)
        expectSameBits(
          joined(shortConv(table, shape, cuts).rows),
          joined(shortConv(table, shape).rows),
          () => `${JSON.stringify(shape)} cut at ${cuts}`,
        );
      for (const shape of DELTAS) {
        const [parts, whole] = [gatedDelta(table, shape, cuts), gatedDelta(table, shape)];
        const place = () => `${JSON.stringify(shape)} cut at ${cuts}`;
        expectSameBits(joined(parts.rows), joined(whole.rows), place);
        expectSameBits(parts.state, whole.state, place);
      }
    }
  });

  it('keep what is not finite, and no more', () => {
    const x = Float32Array.of(1, Number.NaN, 2);
    kernels.gateRow(table, { x, by: Float32Array.of(Number.NaN, 1, 1), activation: 1, n: 3 });
    expect(Array.from(x, Number.isNaN)).toEqual([true, true, false]);
    // Row 0 has a key and a value, row 1 has not: the column of the value stays what it was.
    const state = new Float32Array(2);
    const y = new Float32Array(4);
    const qkv = Float32Array.of(1, 1, Number.NaN, 1, 1, 0, 1, 0);
    const places = {
      query: 0,
      key: 1,
      value: 2,
      valueHeads: 1,
      keyDim: 1,
      valueDim: 2,
      ldqkv: 4,
      ldgates: 2,
      ldy: 2,
    };
    const numbers = { decay: 0, decayBias: 0, epsilon: 1e-6, begin: 0, end: 2 };
    kernels.gatedDelta(table, { ...places, ...numbers, qkv, gates: new Float32Array(4), state, y });
    expect([...y, ...state].map(Number.isNaN)).toEqual([true, false, true, false, true, false]);
  });
});

it.each(twins)('layers that keep states, %s gives the bits of %s', (vector, scalar) => {
  for (const n of WIDTHS)
    for (const [number] of ACTIVATIONS)
      expectSameBits(gateRow(vector, n, number).x, gateRow(scalar, n, number).x, () => `gate of ${n}`);
  for (const shape of CONVS)
    expectSameBits(joined(shortConv(vector, shape).rows), joined(shortConv(scalar, shape).rows), () =>
      JSON.stringify(shape),
    );
  for (const shape of DELTAS) {
    const [a, b] = [gatedDelta(vector, shape), gatedDelta(scalar, shape)];
    expectSameBits(joined(a.rows), joined(b.rows), () => JSON.stringify(shape));
    expectSameBits(a.state, b.state, () => JSON.stringify(shape));
  }
});

it('gates and convolutions of all tables give the same bits, whatever the width of their vectors', () => {
  for (const table of tables)
    for (const shape of CONVS.filter(({ activation }) => activation === 0))
      expect(bitsOf(joined(shortConv(table, shape).rows)), `${table} ${JSON.stringify(shape)}`).toEqual(
        bitsOf(joined(shortConv(tables[0]!, shape).rows)),
      );
});
