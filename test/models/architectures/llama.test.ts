import { describe, expect, it } from 'vitest';
import { planNetwork } from '../../../models/architectures/index.js';
import type { ModelConfig } from '../../../models/model-config.js';

const config: ModelConfig = {
  architecture: 'llama',
  vocabSize: 50,
  hiddenSize: 12,
  intermediateSize: 20,
  numLayers: 2,
  numHeads: 3,
  numKvHeads: 1,
  headDim: 4,
  rmsNormEpsilon: 1e-5,
  activation: 'silu',
  attentionBias: false,
  mlpBias: false,
  tieWordEmbeddings: true,
  maxPositions: 64,
  slidingWindow: null,
  rope: { theta: 10_000, rotaryDim: 4, scaling: { type: 'none' } },
  bosTokenId: 1,
  eosTokenIds: [2],
  padTokenId: null,
};

describe('llama', () => {
  it('plans a layer as norm, qkv, RoPE, attention, output, norm, gated MLP, down', () => {
    const layer = [
      'rmsNorm',
      'linear',
      'ropeAndCache',
      'attention',
      'linear',
      'rmsNorm',
      'gatedLinear',
      'linear',
    ];
    const { ops, logits, values } = planNetwork(config);
    const expected = ['embedding', ...layer, ...layer, 'selectRows', 'rmsNorm', 'linear'];
    expect(ops.map(({ op }) => op)).toEqual(expected);
    expect(values[logits]).toMatchObject({ rows: 'logits', width: 50 });
  });

  it('stacks q, k, v and gate, up; stores tied embeddings once', () => {
    const { weights } = planNetwork(config);
    expect(weights.length).toBe(1 + 2 * 6 + 1);
    const byName = new Map(weights.map((weight) => [weight.name, weight]));
    expect(byName.get('layers.1.qkv')).toMatchObject({ kind: 'matrix', rows: 20, columns: 12 });
    expect(byName.get('layers.1.gateUp')?.sources.map(({ name }) => name)).toEqual([
      'model.layers.1.mlp.gate_proj.weight',
      'model.layers.1.mlp.up_proj.weight',
    ]);
    expect(byName.has('output')).toBe(false);
  });

  it('takes an own output and biases where the config has them', () => {
    const plan = planNetwork({ ...config, tieWordEmbeddings: false, attentionBias: true, mlpBias: true });
    const names = plan.weights.map(({ name }) => name);
    expect(names).toContain('output');
    expect(names.filter((name) => name.endsWith('.bias')).length).toBe(2 * 4);
    const bias = plan.weights.find(({ name }) => name === 'layers.0.qkv.bias');
    expect(bias).toMatchObject({ kind: 'vector', rows: 1, columns: 20 });
    expect(bias?.sources.map(({ columns }) => columns)).toEqual([12, 4, 4]);
    const linear = plan.ops.filter((op) => op.op === 'linear' && op.weight !== 'output');
    expect(linear.every((op) => op.op === 'linear' && op.bias !== null)).toBe(true);
  });

  it('names what it knows where an architecture is unknown', () => {
    expect(() => planNetwork({ ...config, architecture: 'constructor' })).toThrow(
      /"constructor".*known: llama/,
    );
  });
});
