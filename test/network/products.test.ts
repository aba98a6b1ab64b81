import { describe, expect, it } from 'vitest';
import { planNetwork } from '../../models/architectures/index.js';
import { multipliedWeights, productsOf } from '../../network/products.js';
import { expertsConfig } from '../support/experts-config.js';

const { ops } = planNetwork(expertsConfig());

describe('the products of an op', () => {
  it('are those of each expert, the gated one first, and one of a linear op', () => {
    const experts = productsOf(ops.find(({ op }) => op === 'experts')!);
    expect(experts).toHaveLength(8);
    expect(experts.slice(2, 4)).toEqual([
      { weight: 'layers.0.experts.1.gateUp', gated: true },
      { weight: 'layers.0.experts.1.down', gated: false },
    ]);
    const [router] = ops.filter((op) => op.op === 'linear' && op.weight.endsWith('router'));
    expect(productsOf(router!)).toEqual([{ weight: 'layers.0.router', gated: false }]);
    expect(productsOf(ops[0]!)).toEqual([]);
  });

  it('have all matrices of a plan but the embedding', () => {
    const { weights } = planNetwork(expertsConfig());
    const matrices = weights.filter(({ kind }) => kind === 'matrix').map(({ name }) => name);
    expect([...multipliedWeights({ ops })].sort()).toEqual(
      matrices.filter((name) => name !== 'embedding').sort(),
    );
  });
});
