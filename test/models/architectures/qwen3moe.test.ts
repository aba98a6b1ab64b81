import { describe, expect, it } from 'vitest';
import { planNetwork } from '../../../models/architectures/index.js';
import { expertsConfig } from '../../support/experts-config.js';

describe('qwen3moe', () => {
  it('plans a layer as that of Qwen3, with a router and experts in place of the MLP', () => {
    const layer = [
      'rmsNorm',
      'linear',
      'rmsNormHeads',
      'rmsNormHeads',
      'ropeAndCache',
      'attention',
      'linear',
      'rmsNorm',
      'linear',
      'experts',
    ];
    const { ops, values, logits } = planNetwork(expertsConfig());
    const expected = ['embedding', ...layer, ...layer, 'selectRows', 'rmsNorm', 'linear'];
    expect(ops.map(({ op }) => op)).toEqual(expected);
    expect(values[logits]).toMatchObject({ rows: 'logits', width: 50 });
  });

  it('gives the experts the normed rows and their scores, and adds what they say to the rows', () => {
    const { ops, values } = planNetwork(expertsConfig());
    const at = ops.findIndex(({ op }) => op === 'experts');
    const [norm, router, experts] = ops.slice(at - 2, at + 1);
    expect(norm).toMatchObject({ op: 'rmsNorm', weight: 'layers.0.mlpNorm' });
    expect(router).toMatchObject({ op: 'linear', weight: 'layers.0.router', bias: null, activation: 'none' });
    expect(experts).toMatchObject({
      input: (norm as { output: number }).output,
      scores: (router as { output: number }).output,
      output: 0,
      residual: 0,
      gateUp: [0, 1, 2, 3].map((expert) => `layers.0.experts.${expert}.gateUp`),
      down: [0, 1, 2, 3].map((expert) => `layers.0.experts.${expert}.down`),
      used: 2,
      normalize: true,
      activation: 'silu',
    });
    expect(values[(router as { output: number }).output]).toMatchObject({ rows: 'tokens', width: 4 });
  });

  it('stacks gate over up of each expert, and has a matrix for the way down', () => {
    const { weights } = planNetwork(expertsConfig());
    const byName = new Map(weights.map((weight) => [weight.name, weight]));
    expect(weights).toHaveLength(1 + 2 * (6 + 1 + 2 * 4) + 2);
    expect(byName.get('layers.1.router')).toMatchObject({
      rows: 4,
      columns: 12,
      sources: [{ name: 'model.layers.1.mlp.gate.weight' }],
    });
    expect(byName.get('layers.1.experts.3.gateUp')).toMatchObject({ kind: 'matrix', rows: 16, columns: 12 });
    expect(byName.get('layers.1.experts.3.gateUp')!.sources).toEqual([
      { name: 'model.layers.1.mlp.experts.3.gate_proj.weight', rows: 8, columns: 12 },
      { name: 'model.layers.1.mlp.experts.3.up_proj.weight', rows: 8, columns: 12 },
    ]);
    expect(byName.get('layers.0.experts.0.down')).toMatchObject({
      rows: 12,
      columns: 8,
      sources: [{ name: 'model.layers.0.mlp.experts.0.down_proj.weight' }],
    });
  });

  it('has biases in attention where the config has them, and shares that do not add up to 1', () => {
    const experts = { count: 5, used: 3, width: 8, normalize: false };
    const { ops, weights } = planNetwork(expertsConfig({ attentionBias: true, experts }));
    expect(weights.filter(({ name }) => name.endsWith('.bias'))).toHaveLength(4);
    expect(ops.filter(({ op }) => op === 'experts')).toMatchObject([
      { used: 3, normalize: false },
      { used: 3, normalize: false },
    ]);
  });

  it('says what is missing where the config has no experts, or more are used than there are', () => {
    const { experts: _, ...none } = expertsConfig();
    expect(() => planNetwork(none)).toThrow(/network of qwen3moe has no experts in its configuration/);
    const using = (used: number) => () =>
      planNetwork(expertsConfig({ experts: { count: 4, used, width: 8, normalize: true } }));
    for (const used of [0, 5, 1.5]) expect(using(used)).toThrow(`${used} of 4 experts`);
  });
});
