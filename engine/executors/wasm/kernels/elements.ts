import { activated, one, softCapped, storeOne, xieluOf } from './lanes';

/** y = activation(x) + residual, `count` values; residual 0: none, may be y. */
export function finishRows(x: usize, residual: usize, activation: i32, count: i32, y: usize): void {
  const bytes = (<usize>count) << 2;
  const whole = (<usize>(count & ~3)) << 2;
  let i: usize = 0;
  for (; i < whole; i += 16) {
    let four = activated(activation, v128.load(x + i));
    if (residual) four = f32x4.add(four, v128.load(residual + i));
    v128.store(y + i, four);
  }
  for (; i < bytes; i += 4) {
    let single = activated(activation, one(x + i));
    if (residual) single = f32x4.add(single, one(residual + i));
    storeOne(y + i, single);
  }
}

/** y[row][i] = activation(x[row][i]) * x[row][width + i]: gate and up lie side by side. */
export function gateRows(x: usize, rows: i32, width: i32, activation: i32, y: usize): void {
  const bytes = (<usize>width) << 2;
  const whole = (<usize>(width & ~3)) << 2;
  for (let row = 0; row < rows; row++, x += 2 * bytes, y += bytes) {
    let i: usize = 0;
    for (; i < whole; i += 16) {
      v128.store(y + i, f32x4.mul(activated(activation, v128.load(x + i)), v128.load(x + bytes + i)));
    }
    for (; i < bytes; i += 4) {
      storeOne(y + i, f32x4.mul(activated(activation, one(x + i)), one(x + bytes + i)));
    }
  }
}

// Number of the sigmoid among the activations.
const SIGMOID: i32 = 7;

/**
 * y[row][i] = gate * sigmoid(alpha * gate) * (up + 1), of gate = min(x[row][i], limit) and up = x[row][width + i] between -limit and limit.
 * What is no number stays none.
 */
export function clampRows(x: usize, rows: i32, width: i32, alpha: f32, limit: f32, y: usize): void {
  const bytes = (<usize>width) << 2;
  const whole = (<usize>(width & ~3)) << 2;
  for (let row = 0; row < rows; row++, x += 2 * bytes, y += bytes) {
    let i: usize = 0;
    for (; i < whole; i += 16)
      v128.store(y + i, clamped(v128.load(x + i), v128.load(x + bytes + i), alpha, limit));
    for (; i < bytes; i += 4) storeOne(y + i, clamped(one(x + i), one(x + bytes + i), alpha, limit));
  }
}

function clamped(gate: v128, up: v128, alpha: f32, limit: f32): v128 {
  const most = f32x4.splat(limit);
  const g = f32x4.min(gate, most);
  const u = f32x4.max(f32x4.min(up, most), f32x4.splat(-limit));
  const share = activated(SIGMOID, f32x4.mul(f32x4.splat(alpha), g));
  return f32x4.mul(f32x4.mul(g, share), f32x4.add(u, f32x4.splat(1)));
}

/** y += share * x, `count` values. */
export function addShare(x: usize, share: f32, count: i32, y: usize): void {
  const bytes = (<usize>count) << 2;
  const whole = (<usize>(count & ~3)) << 2;
  const factor = f32x4.splat(share);
  let i: usize = 0;
  for (; i < whole; i += 16) {
    v128.store(y + i, f32x4.add(v128.load(y + i), f32x4.mul(factor, v128.load(x + i))));
  }
  for (; i < bytes; i += 4) storeOne(y + i, f32x4.add(one(y + i), f32x4.mul(factor, one(x + i))));
}

/** x[row][i] *= factor, for `columns` columns; stride: floats between rows. */
export function scaleColumns(x: usize, stride: i32, columns: i32, factor: f32, rows: i32): void {
  const bytes = (<usize>columns) << 2;
  for (let row = 0; row < rows; row++, x += (<usize>stride) << 2) {
    for (let at = x; at < x + bytes; at += 4) f32.store(at, f32.load(at) * factor);
  }
}

/** x[row][i] = min(max(x[row][i], least), most), for `columns` columns; a NaN stays one. stride: floats between rows. */
export function clampColumns(x: usize, stride: i32, columns: i32, least: f32, most: f32, rows: i32): void {
  const bytes = (<usize>columns) << 2;
  for (let row = 0; row < rows; row++, x += (<usize>stride) << 2) {
    for (let at = x; at < x + bytes; at += 4) f32.store(at, min<f32>(max<f32>(f32.load(at), least), most));
  }
}

/** x = cap * tanh(x / cap), `count` values. */
export function capRows(x: usize, cap: f32, count: i32): void {
  const end = x + ((<usize>count) << 2);
  const whole = x + ((<usize>(count & ~3)) << 2);
  for (; x < whole; x += 16) v128.store(x, softCapped(v128.load(x), cap));
  for (; x < end; x += 4) storeOne(x, softCapped(one(x), cap));
}

/** x = xIELU(x), `count` values. */
export function xieluRows(
  x: usize,
  alphaPositive: f32,
  alphaNegative: f32,
  beta: f32,
  epsilon: f32,
  count: i32,
): void {
  const end = x + ((<usize>count) << 2);
  const whole = x + ((<usize>(count & ~3)) << 2);
  for (; x < whole; x += 16)
    v128.store(x, xieluOf(v128.load(x), alphaPositive, alphaNegative, beta, epsilon));
  for (; x < end; x += 4) storeOne(x, xieluOf(one(x), alphaPositive, alphaNegative, beta, epsilon));
}

/** Returns 1 if `count` values, a multiple of 4, are all finite, else 0. */
export function allFinite(x: usize, count: i32): i32 {
  const end = x + ((<usize>count) << 2);
  const exponent = i32x4.splat(0x7f800000);
  let anyBad = i32x4.splat(0);
  for (; x < end; x += 16) anyBad = v128.or(anyBad, i32x4.eq(v128.and(v128.load(x), exponent), exponent));
  return v128.any_true(anyBad) ? 0 : 1;
}
