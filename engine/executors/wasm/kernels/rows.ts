import { one, storeOne, sumOf } from './lanes';

/** y[i] = x[i] * inverse * weight[i] (+ residual[i]), one row. weight 0: none. */
function scaled(x: usize, inverse: f32, weight: usize, residual: usize, width: i32, y: usize): void {
  const bytes = (<usize>width) << 2;
  const whole = (<usize>(width & ~3)) << 2;
  const factor = f32x4.splat(inverse);
  let i: usize = 0;
  for (; i < whole; i += 16) {
    let normed = f32x4.mul(v128.load(x + i), factor);
    if (weight) normed = f32x4.mul(normed, v128.load(weight + i));
    if (residual) normed = f32x4.add(normed, v128.load(residual + i));
    v128.store(y + i, normed);
  }
  for (; i < bytes; i += 4) {
    let normed = f32x4.mul(one(x + i), factor);
    if (weight) normed = f32x4.mul(normed, one(weight + i));
    if (residual) normed = f32x4.add(normed, one(residual + i));
    storeOne(y + i, normed);
  }
}

/** Sum of x^2, in four lanes over ascending columns. */
export function sumOfSquares(x: usize, width: i32): f32 {
  const end = x + ((<usize>width) << 2);
  const whole = x + ((<usize>(width & ~3)) << 2);
  let squares = f32x4.splat(0);
  for (; x < whole; x += 16) {
    const four = v128.load(x);
    squares = f32x4.add(squares, f32x4.mul(four, four));
  }
  for (; x < end; x += 4) {
    const single = one(x);
    squares = f32x4.add(squares, f32x4.mul(single, single));
  }
  return sumOf(squares);
}

/** y = x / sqrt(mean(x^2) + epsilon) * weight + residual; residual 0: none. y may be x or residual. */
export function rmsNorm(
  x: usize,
  weight: usize,
  epsilon: f32,
  residual: usize,
  width: i32,
  rows: i32,
  y: usize,
): void {
  const bytes = (<usize>width) << 2;
  for (let row = 0; row < rows; row++, x += bytes, y += bytes) {
    const inverse: f32 = 1 / sqrt<f32>(sumOfSquares(x, width) / <f32>width + epsilon);
    scaled(x, inverse, weight, residual, width, y);
    if (residual) residual += bytes;
  }
}

/** Norms in place each of `heads` heads of each row like rmsNorm; x: the first head, `stride` floats between rows; weight 0: none. */
export function normHeads(
  x: usize,
  stride: i32,
  heads: i32,
  width: i32,
  weight: usize,
  epsilon: f32,
  rows: i32,
): void {
  for (let row = 0; row < rows; row++, x += (<usize>stride) << 2)
    rmsNorm(x, weight, epsilon, 0, width, heads, x);
}

/**
 * y = (x - mean) / sqrt(variance + epsilon) * weight + bias; the variance is over all values (not one less). bias 0: none. y may
 * be x.
 */
export function layerNorm(
  x: usize,
  weight: usize,
  bias: usize,
  epsilon: f32,
  width: i32,
  rows: i32,
  y: usize,
): void {
  const bytes = (<usize>width) << 2;
  const whole = (<usize>(width & ~3)) << 2;
  for (let row = 0; row < rows; row++, x += bytes, y += bytes) {
    let i: usize = 0;
    let total = f32x4.splat(0);
    for (; i < whole; i += 16) total = f32x4.add(total, v128.load(x + i));
    for (; i < bytes; i += 4) total = f32x4.add(total, one(x + i));
    const average: f32 = sumOf(total) / <f32>width;
    const mean = f32x4.splat(average);
    let squares = f32x4.splat(0);
    for (i = 0; i < whole; i += 16) {
      const apart = f32x4.sub(v128.load(x + i), mean);
      v128.store(y + i, apart);
      squares = f32x4.add(squares, f32x4.mul(apart, apart));
    }
    for (; i < bytes; i += 4) {
      const apart = f32.load(x + i) - average;
      f32.store(y + i, apart);
      squares = f32x4.add(squares, f32x4.replace_lane(f32x4.splat(0), 0, apart * apart));
    }
    const inverse: f32 = 1 / sqrt<f32>(sumOf(squares) / <f32>width + epsilon);
    scaled(y, inverse, weight, bias, width, y);
  }
}

/** LayerNorm in place of each of `heads` heads of each row, each with its part of the weight; x: the first head. */
export function layerNormHeads(
  x: usize,
  stride: i32,
  heads: i32,
  width: i32,
  weight: usize,
  epsilon: f32,
  rows: i32,
): void {
  const bytes = (<usize>width) << 2;
  for (let row = 0; row < rows; row++, x += (<usize>stride) << 2) {
    for (let head: usize = 0; head < <usize>heads; head++) {
      const at = x + head * bytes;
      layerNorm(at, weight + head * bytes, 0, epsilon, width, 1, at);
    }
  }
}

/** y = the mean over the rows, added in ascending order. */
export function meanRows(x: usize, rows: i32, width: i32, y: usize): void {
  const bytes = (<usize>width) << 2;
  const inverse: f32 = 1 / <f32>rows;
  for (let i: usize = 0; i < bytes; i += 4) {
    let total: f32 = 0;
    for (let row = 0, at = x + i; row < rows; row++, at += bytes) total += f32.load(at);
    f32.store(y + i, total * inverse);
  }
}

/** y = x / max(|x|, 1e-12) */
export function unitRows(x: usize, width: i32, rows: i32, y: usize): void {
  const bytes = (<usize>width) << 2;
  for (let row = 0; row < rows; row++, x += bytes, y += bytes) {
    const norm = sqrt<f32>(sumOfSquares(x, width));
    const inverse: f32 = 1 / max<f32>(norm, 1e-12);
    for (let i: usize = 0; i < bytes; i += 4) f32.store(y + i, f32.load(x + i) * inverse);
  }
}

/**
 * Rotates the pairs (i, i + half) of each head in place. cosines, sines: `half` for each row. `stride` floats between
 * the rows of x.
 */
export function rope(
  x: usize,
  stride: i32,
  heads: i32,
  headWidth: i32,
  half: i32,
  rows: i32,
  cosines: usize,
  sines: usize,
): void {
  const bytes = (<usize>half) << 2;
  const whole = (<usize>(half & ~3)) << 2;
  for (let row = 0; row < rows; row++, x += (<usize>stride) << 2, cosines += bytes, sines += bytes) {
    for (let head = 0, low = x; head < heads; head++, low += (<usize>headWidth) << 2) {
      const high = low + bytes;
      let i: usize = 0;
      for (; i < whole; i += 16) {
        const a = v128.load(low + i);
        const b = v128.load(high + i);
        const cosine = v128.load(cosines + i);
        const sine = v128.load(sines + i);
        v128.store(low + i, f32x4.sub(f32x4.mul(a, cosine), f32x4.mul(b, sine)));
        v128.store(high + i, f32x4.add(f32x4.mul(b, cosine), f32x4.mul(a, sine)));
      }
      for (; i < bytes; i += 4) {
        const a = f32.load(low + i);
        const b = f32.load(high + i);
        f32.store(low + i, a * f32.load(cosines + i) - b * f32.load(sines + i));
        f32.store(high + i, b * f32.load(cosines + i) + a * f32.load(sines + i));
      }
    }
  }
}

/** y = the first `width` columns of x, rows next to each other; `stride` floats between the rows of x. */
export function copyColumns(x: usize, stride: i32, width: i32, rows: i32, y: usize): void {
  const bytes = (<usize>width) << 2;
  for (let row = 0; row < rows; row++, x += (<usize>stride) << 2, y += bytes) memory.copy(y, x, bytes);
}
