import type { Activation } from '../../../network/plan.js';
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

/** (x - mean(x)) / deviation(x) * weight + bias */
export function layerNorm(ops: Ops, x: Output, weight: Output, bias: Output, epsilon: number): Output {
  const centred = ops.sub(x, ops.mean(x, 1, true));
  const variance = ops.mean(ops.square(centred), 1, true);
  const scaled = ops.div(centred, rootOf(ops, variance, epsilon, 1));
  return ops.add(ops.mul(scaled, weight), bias);
}

/** x / |x|; of a row of zeros zeros. */
export function unitRows(ops: Ops, x: Output): Output {
  const length = rootOf(ops, ops.sum(ops.square(x), 1, true), 0, 1);
  return ops.div(x, ops.maximum(length, ops.float(1e-12)));
}

/** cap * tanh(x / cap) */
export function softCap(ops: Ops, x: Output, cap: number): Output {
  return ops.mul(ops.tanh(ops.div(x, ops.float(cap))), ops.float(cap));
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
  }
}
