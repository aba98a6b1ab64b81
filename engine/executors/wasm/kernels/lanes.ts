/** Arithmetic of the kernels: four lanes of f32. Each function gives a lane the same bits in any place. */

/** Loads one value of a tail shorter than four into lane 0, with zeros in the others. */
export function one(at: usize): v128 {
  return v128.load32_zero(at);
}

export function storeOne(at: usize, x: v128): void {
  f32.store(at, f32x4.extract_lane(x, 0));
}

/** The four lanes added: (0 + 2) + (1 + 3). */
export function sumOf(x: v128): f32 {
  const pairs = f32x4.add(x, i8x16.shuffle(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  return f32x4.extract_lane(pairs, 0) + f32x4.extract_lane(pairs, 1);
}

function periods(x: v128): v128 {
  return f32x4.nearest(f32x4.mul(x, f32x4.splat(Mathf.LOG2E)));
}

function powerOf(n: v128): v128 {
  return i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), i32x4.splat(127)), 23);
}

/** exp(x - n ln 2) - 1 for n = periods(x): a polynomial of degree 7 with the coefficients of Cephes' expf. */
function fraction(x: v128, n: v128): v128 {
  let r = f32x4.sub(x, f32x4.mul(n, f32x4.splat(0.693359375)));
  r = f32x4.add(r, f32x4.mul(n, f32x4.splat(0.00021219444)));
  let p = f32x4.add(f32x4.mul(f32x4.splat(0.000198756915), r), f32x4.splat(0.0013981999507));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(0.0083334519073));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(0.041665795894));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(0.16666665459));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(0.50000001201));
  return f32x4.add(f32x4.mul(p, f32x4.mul(r, r)), r);
}

/** exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln 2 / 2. Within 2 ulp; 0 below -87.3, infinity above 88.3, NaN stays NaN. */
export function exp(x: v128): v128 {
  const n = periods(x);
  const inside = f32x4.mul(f32x4.add(fraction(x, n), f32x4.splat(1)), powerOf(n));
  const above = v128.bitselect(f32x4.splat(f32.POSITIVE_INFINITY), inside, f32x4.gt(x, f32x4.splat(88.3)));
  return v128.bitselect(f32x4.splat(0), above, f32x4.lt(x, f32x4.splat(-87.3)));
}

/** exp(x) - 1 for x up to 0, which keeps its digits near 0; -1 below -87.3, NaN stays NaN. */
function exponentialLess1(x: v128): v128 {
  const n = periods(x);
  const power = powerOf(n);
  const minusOne = f32x4.splat(-1);
  const inside = f32x4.add(f32x4.mul(fraction(x, n), power), f32x4.add(power, minusOne));
  return v128.bitselect(minusOne, inside, f32x4.lt(x, f32x4.splat(-87.3)));
}

/** alphaPositive x^2 + beta x above 0, else alphaNegative (exp(min(x, epsilon)) - 1 - x) + beta x. NaN stays NaN. */
export function xieluOf(x: v128, alphaPositive: f32, alphaNegative: f32, beta: f32, epsilon: f32): v128 {
  const linear = f32x4.mul(f32x4.splat(beta), x);
  const positive = f32x4.add(f32x4.mul(f32x4.mul(f32x4.splat(alphaPositive), x), x), linear);
  const bend = f32x4.sub(exponentialLess1(f32x4.min(x, f32x4.splat(epsilon))), x);
  const negative = f32x4.add(f32x4.mul(f32x4.splat(alphaNegative), bend), linear);
  return v128.bitselect(positive, negative, f32x4.gt(x, f32x4.splat(0)));
}

/** 1 - 2 / (exp(2 x) + 1): within 1e-7 of tanh. NaN stays NaN. */
export function tanh(x: v128): v128 {
  const one = f32x4.splat(1);
  return f32x4.sub(one, f32x4.div(f32x4.splat(2), f32x4.add(exp(f32x4.add(x, x)), one)));
}

/** cap * tanh(x / cap) */
export function softCapped(x: v128, cap: f32): v128 {
  return f32x4.mul(f32x4.splat(cap), tanh(f32x4.div(x, f32x4.splat(cap))));
}

function times(p: v128, x: v128, plus: f32): v128 {
  return f32x4.add(f32x4.mul(p, x), f32x4.splat(plus));
}

/** erf in f32, within 4 ulp, by the quotient of polynomials that Eigen and XLA use; beyond 4 it is 1. NaN stays NaN. */
export function erf(x: v128): v128 {
  const square = f32x4.mul(x, x);
  let above = f32x4.splat(-2.72614225801306e-10);
  above = times(above, square, 2.77068142495902e-8);
  above = times(above, square, -2.10102402082508e-6);
  above = times(above, square, -5.69250639462346e-5);
  above = times(above, square, -7.34990630326855e-4);
  above = times(above, square, -2.95459980854025e-3);
  above = times(above, square, -1.60960333262415e-2);
  let below = f32x4.splat(-1.45660718464996e-5);
  below = times(below, square, -2.13374055278905e-4);
  below = times(below, square, -1.68282697438203e-3);
  below = times(below, square, -7.37332916720468e-3);
  below = times(below, square, -1.42647390514189e-2);
  const inside = f32x4.div(f32x4.mul(x, above), below);
  const low = v128.bitselect(f32x4.splat(-1), inside, f32x4.lt(x, f32x4.splat(-4)));
  return v128.bitselect(f32x4.splat(1), low, f32x4.gt(x, f32x4.splat(4)));
}

/** Applies an activation, numbered as in ACTIVATIONS of engine/executors/wasm/kernels.ts. */
export function activated(activation: i32, x: v128): v128 {
  const one = f32x4.splat(1);
  switch (activation) {
    case 1: // silu
      return f32x4.div(x, f32x4.add(one, exp(f32x4.neg(x))));
    case 2: {
      // gelu
      const bell = f32x4.add(one, erf(f32x4.mul(x, f32x4.splat(Mathf.SQRT1_2))));
      return f32x4.mul(f32x4.mul(f32x4.splat(0.5), x), bell);
    }
    case 3: {
      // geluTanh
      const cube = f32x4.mul(f32x4.mul(x, x), x);
      const inner = f32x4.add(f32x4.mul(f32x4.splat(0.044715), cube), x);
      const bell = f32x4.add(one, tanh(f32x4.mul(f32x4.splat(0.7978845608028654), inner)));
      return f32x4.mul(f32x4.mul(f32x4.splat(0.5), x), bell);
    }
    case 4:
      return tanh(x);
    case 5: // relu; NaN stays NaN
      return f32x4.max(x, f32x4.splat(0));
    case 6: {
      // reluSquared; NaN stays NaN
      const above = f32x4.max(x, f32x4.splat(0));
      return f32x4.mul(above, above);
    }
    case 7: // sigmoid
      return f32x4.div(one, f32x4.add(one, exp(f32x4.neg(x))));
    case 8: // quickGelu
      return f32x4.div(x, f32x4.add(one, exp(f32x4.mul(f32x4.splat(-1.702), x))));
    default:
      return x;
  }
}
