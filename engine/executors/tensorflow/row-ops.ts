import type { Activation, PlanOp, Xielu } from '../../../network/plan.js';
import { DType, type Output } from './graph/graph.js';
import type { Ops } from './graph/ops.js';

/** Number of values in a vector register, assumed to be the same on every processor. */
const LANES = 16;

/**
 * Square root of x + added [rows, 1]. Vector registers and scalar code for the remainder round roots differently, so each
 * row's root is taken a whole register wide: then a row has the same bits in any place.
 */
function rootOf(ops: Ops, x: Output, added: number, axis: number): Output {
  const spread = ops.graph.constant(DType.float, new Array(LANES).fill(added), [LANES]);
  // A slice is taken because TensorFlow would turn a maximum of roots into the root of a maximum.
  return ops.firstColumn(ops.sqrt(ops.add(x, spread)), axis);
}

/** x / rms(x) * weight */
export function rmsNorm(ops: Ops, x: Output, weight: Output, epsilon: number, axis: number): Output {
  const mean = ops.mean(ops.square(x), axis, true);
  return ops.mul(ops.div(x, rootOf(ops, mean, epsilon, axis)), weight);
}

/** (x - mean(x)) / deviation(x) * weight + bias, over the last axis; null: without a bias. */
export function layerNorm(
  ops: Ops,
  x: Output,
  { weight, bias }: { weight: Output; bias: Output | null },
  epsilon: number,
  axis: number,
): Output {
  const centred = ops.sub(x, ops.mean(x, axis, true));
  const variance = ops.mean(ops.square(centred), axis, true);
  const scaled = ops.mul(ops.div(centred, rootOf(ops, variance, epsilon, axis)), weight);
  return bias === null ? scaled : ops.add(scaled, bias);
}

/** x / |x|; of a row of zeros zeros. */
export function unitRows(ops: Ops, x: Output): Output {
  const length = rootOf(ops, ops.sum(ops.square(x), 1, true), 0, 1);
  return ops.div(x, ops.maximum(length, ops.float(1e-12)));
}

/** x with some of its columns times the activation of columns of another value, as the op `gate` says. @param widths of both */
export function gated(
  ops: Ops,
  x: Output,
  by: Output,
  { first, columns, byFirst, per = 1, activation }: Extract<PlanOp, { op: 'gate' }>,
  [width, byWidth]: readonly [number, number],
): Output {
  const count = columns / per;
  const [before, own, behind] = ops.split(x, [first, columns, width - first - columns], 1);
  const [, given] = ops.split(by, [byFirst, count, byWidth - byFirst - count], 1);
  const factors = activate(ops, given!, activation);
  const product =
    per === 1
      ? ops.mul(own!, factors)
      : ops.reshape(ops.mul(ops.reshape(own!, [-1, count, per]), ops.expand(factors, 2)), [-1, columns]);
  return ops.concat([before!, product, behind!], 1);
}

/** cap * tanh(x / cap) */
export function softCap(ops: Ops, x: Output, cap: number): Output {
  return ops.mul(ops.tanh(ops.div(x, ops.float(cap))), ops.float(cap));
}

/** alphaPositive x^2 + beta x above 0, else alphaNegative (exp(min(x, epsilon)) - 1 - x) + beta x */
export function xielu(ops: Ops, x: Output, numbers: Xielu): Output {
  const [alphaPositive, alphaNegative, beta, epsilon] = [
    numbers.alphaPositive,
    numbers.alphaNegative,
    numbers.beta,
    numbers.epsilon,
  ].map((number) => ops.float(number)) as [Output, Output, Output, Output];
  const positive = ops.mul(ops.square(x), alphaPositive);
  const negative = ops.mul(ops.sub(ops.expm1(ops.minimum(x, epsilon)), x), alphaNegative);
  return ops.add(ops.select(ops.greater(x, ops.float(0)), positive, negative), ops.mul(x, beta));
}

export function activate(ops: Ops, x: Output, activation: Activation): Output {
  switch (activation) {
    case 'none':
      return x;
    case 'silu':
      return ops.mul(x, ops.sigmoid(x));
    case 'gelu': {
      const erf = ops.erf(ops.mul(x, ops.float(Math.SQRT1_2)));
      return ops.mul(ops.mul(x, ops.float(0.5)), ops.add(erf, ops.float(1)));
    }
    case 'geluTanh': {
      const cubed = ops.mul(ops.mul(ops.square(x), x), ops.float(0.044715));
      const inner = ops.mul(ops.add(x, cubed), ops.float(Math.sqrt(2 / Math.PI)));
      return ops.mul(ops.mul(x, ops.float(0.5)), ops.add(ops.tanh(inner), ops.float(1)));
    }
    case 'tanh':
      return ops.tanh(x);
    case 'relu':
      return ops.relu(x);
    case 'reluSquared':
      return ops.square(ops.relu(x));
    case 'sigmoid':
      return ops.sigmoid(x);
    case 'quickGelu':
      return ops.mul(x, ops.sigmoid(ops.mul(x, ops.float(1.702))));
  }
}
