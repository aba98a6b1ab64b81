import { equalCaches } from '../../network/cache-layers.js';
import { type LinearOptions, NetworkBuilder, type ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';

/**
 * GPT-2: learned positions in place of RoPE, LayerNorm, biases everywhere, an MLP without a gate, and an output layer
 * that nearly always shares the embedding's weights.
 *
 *   tokens + positions -> [norm -> q k v -> attention -> output + x -> norm -> up -> down + x] ... -> norm -> logits
 */
export function gpt2(config: ModelConfig): NetworkPlan {
  const { hiddenSize, intermediateSize, vocabSize, numLayers, numHeads, headDim, activation } = config;
  const net = new NetworkBuilder({
    architecture: 'gpt2',
    vocabSize,
    hiddenSize,
    attention: { numLayers, numHeads, rotaryDim: 0 },
    caches: equalCaches(numLayers, numHeads, headDim),
  });

  const table = (name: string, source: string, rows: number) =>
    net.matrix(name, [{ name: `${source}.weight`, rows, columns: hiddenSize }]);
  const vector = (name: string, source: string, columns: number) =>
    net.vector(name, [{ name: source, columns }]);
  const norm = (input: ValueRef, name: string, source: string) => {
    const weight = vector(name, `${source}.weight`, hiddenSize);
    return net.layerNorm(
      input,
      weight,
      vector(`${name}.bias`, `${source}.bias`, hiddenSize),
      config.rmsNormEpsilon,
    );
  };
  const project = (name: string, source: string, rows: number, columns: number): LinearOptions => ({
    weight: net.matrix(name, [{ name: `${source}.weight`, rows, columns }]),
    bias: vector(`${name}.bias`, `${source}.bias`, rows),
  });

  const x = net.embedding(table('embedding', 'wte', vocabSize));
  net.addEmbedding(x, table('positions', 'wpe', config.maxPositions), 'positions');
  for (let layer = 0; layer < numLayers; layer++) {
    const own = `layers.${layer}`;
    const source = `h.${layer}`;
    const attentionInput = norm(x, `${own}.attentionNorm`, `${source}.ln_1`);
    const qkv = project(`${own}.qkv`, `${source}.attn.c_attn`, 3 * hiddenSize, hiddenSize);
    const attended = net.attention(net.linear(attentionInput, qkv), layer, 1 / Math.sqrt(headDim));
    net.addLinear(
      x,
      attended,
      project(`${own}.attentionOutput`, `${source}.attn.c_proj`, hiddenSize, hiddenSize),
    );

    const mlpInput = norm(x, `${own}.mlpNorm`, `${source}.ln_2`);
    const up = project(`${own}.up`, `${source}.mlp.c_fc`, intermediateSize, hiddenSize);
    const h = net.linear(mlpInput, { ...up, activation });
    net.addLinear(x, h, project(`${own}.down`, `${source}.mlp.c_proj`, hiddenSize, intermediateSize));
  }
  const last = norm(net.selectRows(x), 'finalNorm', 'ln_f');
  const output = config.tieWordEmbeddings ? 'embedding' : table('output', 'lm_head', vocabSize);
  return net.build(net.linear(last, { weight: output }));
}
