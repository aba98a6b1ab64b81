/**
 * The selective scan of Mamba2. Tokens are computed one after the other, each column of a head in a lane of its own, so the bits do not
 * depend on how a sequence is cut into chunks.
 */

/**
 * One head over rows of a sequence: see the op selectiveScan in network/plan.ts.
 *
 * @param x the head's first number in the first row; b, c: those of its group; stride: floats between rows
 * @param steps of the head in the first row; stepStride: floats between rows
 * @param state [stateDim x headDim], which changes
 */
export function selectiveScan(
  x: usize,
  b: usize,
  c: usize,
  stride: i32,
  steps: usize,
  stepStride: i32,
  rate: f64,
  stepBias: f32,
  skip: f32,
  leastStep: f32,
  mostStep: f32,
  headDim: i32,
  stateDim: i32,
  state: usize,
  rows: i32,
  y: usize,
  yStride: i32,
): void {
  const columnBytes = (<usize>headDim) << 2;
  const apart = (<usize>stride) << 2;
  for (let row = 0; row < rows; row++) {
    const step = stepOf(f32.load(steps), stepBias, leastStep, mostStep);
    const kept: f32 = <f32>exponential(<f64>step * rate);
    let i: usize = 0;
    for (; i + 32 <= columnBytes; i += 32)
      eightColumns(x + i, b, c, stateDim, kept, step, skip, state + i, columnBytes, y + i);
    for (; i + 16 <= columnBytes; i += 16)
      fourColumns(x + i, b, c, stateDim, kept, step, skip, state + i, columnBytes, y + i);
    for (; i < columnBytes; i += 4)
      oneColumn(x + i, b, c, stateDim, kept, step, skip, state + i, columnBytes, y + i);
    x += apart;
    b += apart;
    c += apart;
    steps += (<usize>stepStride) << 2;
    y += (<usize>yStride) << 2;
  }
}

/** softplus(given + bias), in double precision, between limits; what is not a number stays so. */
function stepOf(given: f32, bias: f32, least: f32, most: f32): f32 {
  const input: f64 = <f64>given + <f64>bias;
  const step: f32 = <f32>(input > 30 ? input : Math.log1p(exponential(input)));
  return step < least ? least : step > most ? most : step;
}

/** e^x as of fdlibm's e_exp.c; the language's own would have a table in memory. 0 where it is less than 2^-1022. */
function exponential(x: f64): f64 {
  if (!(x <= 709.78)) return x > 0 ? Infinity : x;
  if (x < -708.39) return 0;
  const k = nearest<f64>(x * Math.LOG2E);
  const high = x - k * 0.6931471803691238;
  const low = k * 1.9082149292705877e-10;
  const r = high - low;
  const t = r * r;
  const p = 6.613756321437934e-5 + t * (-1.6533902205465252e-6 + t * 4.1381367970572385e-8);
  const c = r - t * (0.16666666666666602 + t * (-0.0027777777777015593 + t * p));
  const y = 1.0 + ((r * c) / (2.0 - c) - low + high);
  // In two steps, since 2^1024 is none.
  const half = <i64>k >> 1;
  return y * power(half) * power(<i64>k - half);
}

/** 2^k of a k whose power is a normal number. */
function power(k: i64): f64 {
  return reinterpret<f64>((k + 1023) << 52);
}

// One token, of columns side by side; sums go over ascending rows of the state, in each lane alike:
//
//   S[n] = S[n] * kept + B[n] * (x * step)        y = sum of C[n] * S[n], + skip * x

function eightColumns(
  x: usize,
  b: usize,
  c: usize,
  stateDim: i32,
  kept: f32,
  step: f32,
  skip: f32,
  state: usize,
  apart: usize,
  y: usize,
): void {
  const keep = f32x4.splat(kept);
  const change = f32x4.mul(v128.load(x), f32x4.splat(step));
  const other = f32x4.mul(v128.load(x + 16), f32x4.splat(step));
  let first = f32x4.splat(0);
  let second = f32x4.splat(0);
  for (let n = 0; n < stateDim; n++, b += 4, c += 4, state += apart) {
    const share = v128.load32_splat(b);
    const factor = v128.load32_splat(c);
    const next = f32x4.add(f32x4.mul(v128.load(state), keep), f32x4.mul(share, change));
    const further = f32x4.add(f32x4.mul(v128.load(state + 16), keep), f32x4.mul(share, other));
    v128.store(state, next);
    v128.store(state + 16, further);
    first = f32x4.add(first, f32x4.mul(next, factor));
    second = f32x4.add(second, f32x4.mul(further, factor));
  }
  const skipped = f32x4.splat(skip);
  v128.store(y, f32x4.add(first, f32x4.mul(skipped, v128.load(x))));
  v128.store(y + 16, f32x4.add(second, f32x4.mul(skipped, v128.load(x + 16))));
}

function fourColumns(
  x: usize,
  b: usize,
  c: usize,
  stateDim: i32,
  kept: f32,
  step: f32,
  skip: f32,
  state: usize,
  apart: usize,
  y: usize,
): void {
  const keep = f32x4.splat(kept);
  const change = f32x4.mul(v128.load(x), f32x4.splat(step));
  let sum = f32x4.splat(0);
  for (let n = 0; n < stateDim; n++, b += 4, c += 4, state += apart) {
    const next = f32x4.add(f32x4.mul(v128.load(state), keep), f32x4.mul(v128.load32_splat(b), change));
    v128.store(state, next);
    sum = f32x4.add(sum, f32x4.mul(next, v128.load32_splat(c)));
  }
  v128.store(y, f32x4.add(sum, f32x4.mul(f32x4.splat(skip), v128.load(x))));
}

function oneColumn(
  x: usize,
  b: usize,
  c: usize,
  stateDim: i32,
  kept: f32,
  step: f32,
  skip: f32,
  state: usize,
  apart: usize,
  y: usize,
): void {
  const change: f32 = f32.load(x) * step;
  let sum: f32 = 0;
  for (let n = 0; n < stateDim; n++, b += 4, c += 4, state += apart) {
    const next: f32 = f32.load(state) * kept + f32.load(b) * change;
    f32.store(state, next);
    sum += next * f32.load(c);
  }
  f32.store(y, sum + skip * f32.load(x));
}
