import { describe, expect, it } from 'vitest';
import type { PlanOp } from '../../network/plan.js';
import { multipliedWeights, productsOf } from '../../network/products.js';

const linear: PlanOp = {
  op: 'linear',
  input: 0,
  output: 1,
  weight: 'l',
  bias: 'b',
  activation: 'none',
  residual: null,
};
const gated: PlanOp = { op: 'gatedLinear', input: 0, output: 1, weight: 'g', bias: null, activation: 'silu' };
const experts: PlanOp = {
  op: 'experts',
  input: 0,
  scores: 1,
  output: 2,
  gateUp: ['g0', 'g1'],
  down: ['d0', 'd1'],
  used: 1,
  normalize: true,
  activation: 'silu',
  residual: 2,
};
const norm: PlanOp = { op: 'layerNorm', input: 0, output: 1, weight: 'w', bias: 'c', epsilon: 1e-5 };

describe('the products of an op', () => {
  it('are one of a linear op, gated or not', () => {
    expect(productsOf(linear)).toEqual([{ weight: 'l', gated: false }]);
    expect(productsOf(gated)).toEqual([{ weight: 'g', gated: true }]);
  });

  it('are two of each expert, one expert behind the other', () => {
    expect(productsOf(experts)).toEqual([
      { weight: 'g0', gated: true },
      { weight: 'd0', gated: false },
      { weight: 'g1', gated: true },
      { weight: 'd1', gated: false },
    ]);
  });

  it('have gate and up side by side where these are clamped', () => {
    const clamped = { ...experts, clamped: { alpha: 1.702, limit: 7 } };
    expect(productsOf(clamped).every(({ gated }) => !gated)).toBe(true);
  });

  it('are none of an op that multiplies by no matrix', () => {
    expect(productsOf(norm)).toEqual([]);
    expect(productsOf({ op: 'embedding', output: 0, weight: 'e' })).toEqual([]);
  });
});

describe('the weights that a plan multiplies by', () => {
  it('are those of all products, each once, and neither biases nor tables', () => {
    const ops: PlanOp[] = [{ op: 'embedding', output: 0, weight: 'e' }, norm, linear, gated, experts, linear];
    expect([...multipliedWeights({ ops })]).toEqual(['l', 'g', 'g0', 'd0', 'g1', 'd1']);
  });
});
