import { describe, expect, it } from 'vitest';
import { planNetwork } from '../../../models/architectures/index.js';
import { expertsConfig } from '../../support/experts-config.js';

const config = expertsConfig({ architecture: 'mixtral' });

describe('mixtral', () => {
  it('plans a layer as that of Mistral, with a router and experts in place of the MLP', () => {
    const layer = [
      'rmsNorm',
      'linear',
      'ropeAndCache',
      'attention',
      'linear',
      'rmsNorm',
      'linear',
      'experts',
    ];
    const { ops } = planNetwork(config);
    const expected = ['embedding', ...layer, ...layer, 'selectRows', 'rmsNorm', 'linear'];
    expect(ops.map(({ op }) => op)).toEqual(expected);
  });

  it("has Mixtral's names: w1 is the gate, w3 is up, w2 is down", () => {
    const byName = new Map(planNetwork(config).weights.map((weight) => [weight.name, weight]));
    const sources = (name: string) => byName.get(name)!.sources.map((source) => source.name);
    const block = 'model.layers.1.block_sparse_moe';
    expect(sources('layers.1.router')).toEqual([`${block}.gate.weight`]);
    expect(sources('layers.1.experts.2.gateUp')).toEqual([
      `${block}.experts.2.w1.weight`,
      `${block}.experts.2.w3.weight`,
    ]);
    expect(sources('layers.1.experts.2.down')).toEqual([`${block}.experts.2.w2.weight`]);
  });

  it('has no biases', () => {
    const { weights } = planNetwork({ ...config, attentionBias: true, mlpBias: true });
    expect(weights.filter(({ name }) => name.endsWith('.bias'))).toEqual([]);
  });
});
