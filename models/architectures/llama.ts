import { NetworkBuilder } from '../../engine/network/network-builder.js';
import type { NetworkPlan } from '../../engine/network/plan.js';
import type { ModelConfig } from '../model-config.js';

/**
 * The Llama family: pre-norm decoder layers, grouped-query attention with RoPE, a gated MLP, RMSNorm, optional biases,
 * tied or untied output.
 */
export function llama(config: ModelConfig): NetworkPlan {
  const { hiddenSize, intermediateSize, vocabSize, numLayers, numHeads, numKvHeads, headDim } = config;
  const { attentionBias, mlpBias, rmsNormEpsilon, activation } = config;
  const qSize = numHeads * headDim;
  const kvSize = numKvHeads * headDim;
  const net = new NetworkBuilder({
    architecture: 'llama',
    vocabSize,
    hiddenSize,
    attention: { numLayers, numHeads, numKvHeads, headDim, rotaryDim: config.rope.rotaryDim },
  });

  const norm = (name: string, source: string) =>
    net.vector(name, [{ name: `${source}.weight`, columns: hiddenSize }]);
  /** Projections of one input, stacked into one weight; each source is [name, rows]. */
  const project = (name: string, columns: number, biased: boolean, sources: [string, number][]) => ({
    weight: net.matrix(
      name,
      sources.map(([source, rows]) => ({ name: `${source}.weight`, rows, columns })),
    ),
    bias: biased
      ? net.vector(
          `${name}.bias`,
          sources.map(([source, rows]) => ({ name: `${source}.bias`, columns: rows })),
        )
      : null,
  });

  const embedding = net.matrix('embedding', [
    { name: 'model.embed_tokens.weight', rows: vocabSize, columns: hiddenSize },
  ]);
  const x = net.embedding(embedding);
  for (let layer = 0; layer < numLayers; layer++) {
    const own = `layers.${layer}`;
    const source = `model.layers.${layer}`;

    const attentionNorm = norm(`${own}.attentionNorm`, `${source}.input_layernorm`);
    const qkvProjection = project(`${own}.qkv`, hiddenSize, attentionBias, [
      [`${source}.self_attn.q_proj`, qSize],
      [`${source}.self_attn.k_proj`, kvSize],
      [`${source}.self_attn.v_proj`, kvSize],
    ]);
    const outputProjection = project(`${own}.attentionOutput`, qSize, attentionBias, [
      [`${source}.self_attn.o_proj`, hiddenSize],
    ]);
    const qkv = net.linear(net.rmsNorm(x, attentionNorm, rmsNormEpsilon), qkvProjection);
    net.addLinear(x, net.attention(qkv, layer, 1 / Math.sqrt(headDim)), outputProjection);

    const mlpNorm = norm(`${own}.mlpNorm`, `${source}.post_attention_layernorm`);
    const gateUp = project(`${own}.gateUp`, hiddenSize, mlpBias, [
      [`${source}.mlp.gate_proj`, intermediateSize],
      [`${source}.mlp.up_proj`, intermediateSize],
    ]);
    const down = project(`${own}.down`, intermediateSize, mlpBias, [[`${source}.mlp.down_proj`, hiddenSize]]);
    const h = net.gatedLinear(net.rmsNorm(x, mlpNorm, rmsNormEpsilon), { ...gateUp, activation });
    net.addLinear(x, h, down);
  }

  const last = net.rmsNorm(net.selectRows(x), norm('finalNorm', 'model.norm'), rmsNormEpsilon);
  const output = config.tieWordEmbeddings
    ? embedding
    : net.matrix('output', [{ name: 'lm_head.weight', rows: vocabSize, columns: hiddenSize }]);
  return net.build(net.linear(last, { weight: output }));
}
