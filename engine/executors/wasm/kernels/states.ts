import { activated, one, storeOne } from './lanes';
import { sumOfSquares } from './rows';

/**
 * Work of layers that keep a state of a sequence. Tokens are computed one after the other, each column in a lane of its own, so the
 * bits do not depend on how a sequence is cut into chunks.
 */

/**
 * x[row][i] *= activation(by[row][floor(i / per)]), for `columns` columns. x, by: the first of them; strides: floats between rows.
 */
export function gateColumns(
  x: usize,
  stride: i32,
  by: usize,
  byStride: i32,
  columns: i32,
  per: i32,
  activation: i32,
  rows: i32,
): void {
  const bytes = (<usize>columns) << 2;
  for (let row = 0; row < rows; row++, x += (<usize>stride) << 2, by += (<usize>byStride) << 2) {
    if (per === 1) {
      gateRow(x, by, columns, activation);
      continue;
    }
    const perBytes = (<usize>per) << 2;
    let factor = by;
    for (let i: usize = 0; i < bytes; i += perBytes, factor += 4) {
      const share = f32x4.extract_lane(activated(activation, one(factor)), 0);
      for (let at = x + i; at < x + i + perBytes; at += 4) f32.store(at, f32.load(at) * share);
    }
  }
}

function gateRow(x: usize, by: usize, columns: i32, activation: i32): void {
  const bytes = (<usize>columns) << 2;
  const whole = (<usize>(columns & ~3)) << 2;
  let i: usize = 0;
  for (; i < whole; i += 16) {
    v128.store(x + i, f32x4.mul(v128.load(x + i), activated(activation, v128.load(by + i))));
  }
  for (; i < bytes; i += 4) storeOne(x + i, f32x4.mul(one(x + i), activated(activation, one(by + i))));
}

/**
 * Row `row` of a sequence as far as a convolution reads it: rows before the first one of the step lie in the history, oldest first
 * [taps - 1 x columns]. 0: it is before the sequence's first token.
 */
function inputOf(x: usize, stride: usize, history: usize, bytes: usize, taps: i32, row: i32): usize {
  if (row >= 0) return x + <usize>row * stride;
  return history ? history + <usize>(taps - 1 + row) * bytes : 0;
}

/**
 * Causal convolution of each column with itself over the rows of a sequence, then the activation.
 *
 * @param weight [taps x columns]
 * @param bias 0: none
 * @param history 0: the sequence begins with the first row
 */
export function shortConv(
  x: usize,
  stride: i32,
  history: usize,
  weight: usize,
  bias: usize,
  taps: i32,
  columns: i32,
  activation: i32,
  rows: i32,
  y: usize,
): void {
  const bytes = (<usize>columns) << 2;
  const whole = (<usize>(columns & ~3)) << 2;
  const apart = (<usize>stride) << 2;
  for (let row = 0; row < rows; row++, y += bytes) {
    for (let i: usize = 0; i < bytes; ) {
      const isWhole = i < whole;
      let sum = f32x4.splat(0);
      if (bias) sum = isWhole ? v128.load(bias + i) : one(bias + i);
      for (let tap = 0; tap < taps; tap++) {
        const input = inputOf(x, apart, history, bytes, taps, row - taps + 1 + tap);
        if (!input) continue;
        const factors = weight + <usize>tap * bytes + i;
        const product = isWhole
          ? f32x4.mul(v128.load(factors), v128.load(input + i))
          : f32x4.mul(one(factors), one(input + i));
        sum = f32x4.add(sum, product);
      }
      sum = activated(activation, sum);
      if (isWhole) {
        v128.store(y + i, sum);
        i += 16;
      } else {
        storeOne(y + i, sum);
        i += 4;
      }
    }
  }
}

/** y = x * factor / sqrt(sum of x^2 + epsilon) */
function scaledUnit(x: usize, width: i32, epsilon: f32, factor: f32, y: usize): void {
  const inverse: f32 = factor / sqrt<f32>(sumOfSquares(x, width) + epsilon);
  const bytes = (<usize>width) << 2;
  for (let i: usize = 0; i < bytes; i += 4) f32.store(y + i, f32.load(x + i) * inverse);
}

/**
 * The gated delta rule of one head over rows of a sequence: see the op gatedDelta in network/plan.ts.
 *
 * @param query first number of the head's query in the first row; key, value: the same; stride: floats between rows
 * @param factors of the head for the first row: the share of the state that is kept, and of the change that is taken over; other rows
 *   have them `factorStride` floats after those of the row before
 * @param state [keyDim x valueDim], which changes
 * @param scratch room for two keys
 */
export function gatedDelta(
  query: usize,
  key: usize,
  value: usize,
  stride: i32,
  factors: usize,
  factorStride: i32,
  keyDim: i32,
  valueDim: i32,
  epsilon: f32,
  state: usize,
  rows: i32,
  y: usize,
  yStride: i32,
  scratch: usize,
): void {
  const keyBytes = (<usize>keyDim) << 2;
  const valueBytes = (<usize>valueDim) << 2;
  const scale: f32 = 1 / sqrt<f32>(<f32>keyDim);
  for (let row = 0; row < rows; row++) {
    scaledUnit(query, keyDim, epsilon, scale, scratch);
    scaledUnit(key, keyDim, epsilon, 1, scratch + keyBytes);
    const kept = f32x4.splat(f32.load(factors));
    const share = f32x4.splat(f32.load(factors + 4));
    let i: usize = 0;
    for (; i + 32 <= valueBytes; i += 32) {
      eightColumns(scratch, keyBytes, value + i, kept, share, state + i, valueBytes, y + i);
    }
    for (; i + 16 <= valueBytes; i += 16) {
      fourColumns(scratch, keyBytes, value + i, kept, share, state + i, valueBytes, y + i);
    }
    for (; i < valueBytes; i += 4) {
      oneColumn(scratch, keyBytes, value + i, kept, share, state + i, valueBytes, y + i);
    }
    const apart = (<usize>stride) << 2;
    query += apart;
    key += apart;
    value += apart;
    factors += (<usize>factorStride) << 2;
    y += (<usize>yStride) << 2;
  }
}

// One token, of columns side by side. q: the query, which the key follows; sums go over ascending keys, in each lane alike:
//
//   found = sum of k[i] * (S[i] * kept)        change = (v - found) * share
//   S[i] = S[i] * kept + k[i] * change         y = sum of q[i] * S[i]

function eightColumns(
  q: usize,
  keyBytes: usize,
  v: usize,
  kept: v128,
  share: v128,
  state: usize,
  apart: usize,
  y: usize,
): void {
  let first = f32x4.splat(0);
  let second = f32x4.splat(0);
  const end = q + keyBytes;
  let at = state;
  for (let i = q; i < end; i += 4, at += apart) {
    const k = v128.load32_splat(i + keyBytes);
    first = f32x4.add(first, f32x4.mul(f32x4.mul(v128.load(at), kept), k));
    second = f32x4.add(second, f32x4.mul(f32x4.mul(v128.load(at + 16), kept), k));
  }
  const change = f32x4.mul(f32x4.sub(v128.load(v), first), share);
  const other = f32x4.mul(f32x4.sub(v128.load(v + 16), second), share);
  first = f32x4.splat(0);
  second = f32x4.splat(0);
  at = state;
  for (let i = q; i < end; i += 4, at += apart) {
    const k = v128.load32_splat(i + keyBytes);
    const factor = v128.load32_splat(i);
    const next = f32x4.add(f32x4.mul(v128.load(at), kept), f32x4.mul(k, change));
    const further = f32x4.add(f32x4.mul(v128.load(at + 16), kept), f32x4.mul(k, other));
    v128.store(at, next);
    v128.store(at + 16, further);
    first = f32x4.add(first, f32x4.mul(next, factor));
    second = f32x4.add(second, f32x4.mul(further, factor));
  }
  v128.store(y, first);
  v128.store(y + 16, second);
}

function fourColumns(
  q: usize,
  keyBytes: usize,
  v: usize,
  kept: v128,
  share: v128,
  state: usize,
  apart: usize,
  y: usize,
): void {
  let sum = f32x4.splat(0);
  const end = q + keyBytes;
  let at = state;
  for (let i = q; i < end; i += 4, at += apart) {
    sum = f32x4.add(sum, f32x4.mul(f32x4.mul(v128.load(at), kept), v128.load32_splat(i + keyBytes)));
  }
  const change = f32x4.mul(f32x4.sub(v128.load(v), sum), share);
  sum = f32x4.splat(0);
  at = state;
  for (let i = q; i < end; i += 4, at += apart) {
    const k = v128.load32_splat(i + keyBytes);
    const next = f32x4.add(f32x4.mul(v128.load(at), kept), f32x4.mul(k, change));
    v128.store(at, next);
    sum = f32x4.add(sum, f32x4.mul(next, v128.load32_splat(i)));
  }
  v128.store(y, sum);
}

function oneColumn(
  q: usize,
  keyBytes: usize,
  v: usize,
  kept: v128,
  share: v128,
  state: usize,
  apart: usize,
  y: usize,
): void {
  const keep = f32x4.extract_lane(kept, 0);
  let sum: f32 = 0;
  const end = q + keyBytes;
  let at = state;
  for (let i = q; i < end; i += 4, at += apart) sum += f32.load(at) * keep * f32.load(i + keyBytes);
  const change: f32 = (f32.load(v) - sum) * f32x4.extract_lane(share, 0);
  sum = 0;
  at = state;
  for (let i = q; i < end; i += 4, at += apart) {
    const next: f32 = f32.load(at) * keep + f32.load(i + keyBytes) * change;
    f32.store(at, next);
    sum += next * f32.load(i);
  }
  f32.store(y, sum);
}
