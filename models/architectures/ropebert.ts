import { equalCaches } from '../../network/cache-layers.js';
import { NetworkBuilder, type ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ExpertsConfig, ModelConfig } from '../model-config.js';
import { encoderHead, headWidth } from './encoder-head.js';
import { layerNorm, projection } from './parts.js';

/**
 * BERT's layers with RoPE in place of learned positions, and a gated MLP: nomic-embed (no biases), and GTE's NewModel (biases but for those
 * of the MLP's gate). nomic-embed v2 has an MLP without a gate, and a mixture of such experts in every other layer.
 *
 *   tokens + types -> norm -> [attention + x -> norm -> MLP or experts + x -> norm] ... -> head
 */
export function ropebert(config: ModelConfig): NetworkPlan {
  const { hiddenSize, intermediateSize, vocabSize, numLayers, numHeads, headDim, activation } = config;
  const { attentionBias, mlpBias, experts, rmsNormEpsilon: epsilon } = config;
  const encoder = config.encoder!;
  const net = new NetworkBuilder({
    architecture: 'ropebert',
    vocabSize,
    outputWidth: headWidth(encoder.head, hiddenSize),
    hiddenSize,
    attention: { numLayers: 1, numHeads, rotaryDim: config.rope.rotaryDim },
    caches: equalCaches(1, numHeads, headDim),
  });

  const norm = (x: ValueRef, name: string, source: string) =>
    layerNorm(net, x, name, source, { epsilon, biased: true });
  const project = (name: string, columns: number, sources: [string, number][], biased: boolean) =>
    projection(net, name, columns, sources, biased);
  const table = (name: string, source: string, rows: number) =>
    net.matrix(name, [{ name: `embeddings.${source}.weight`, rows, columns: hiddenSize }]);

  const sum = net.embedding(table('embedding', 'word_embeddings', vocabSize));
  if (!encoder.withoutTypes)
    net.addEmbedding(sum, table('tokenTypes', 'token_type_embeddings', encoder.tokenTypes), 'tokenTypes');
  let x = norm(sum, 'embeddingNorm', 'embeddings.LayerNorm');
  for (let layer = 0; layer < numLayers; layer++) {
    const own = `layers.${layer}`;
    const qkvSource: [string, number] = [`${own}.self_attn.qkv_proj`, 3 * hiddenSize];
    const qkv = net.linear(x, project(`${own}.qkv`, hiddenSize, [qkvSource], attentionBias));
    const attended = net.attention(qkv, 0, 1 / Math.sqrt(headDim), { bothWays: true });
    const outputSource: [string, number] = [`${own}.self_attn.o_proj`, hiddenSize];
    net.addLinear(x, attended, project(`${own}.attentionOutput`, hiddenSize, [outputSource], attentionBias));
    x = norm(x, `${own}.attentionNorm`, `${own}.post_attention_layernorm`);
    const up: [string, number] = [`${own}.mlp.up_proj`, intermediateSize];
    if (experts !== undefined && experts.layers?.[layer] !== false)
      x = withExperts(net, x, own, config, experts);
    else {
      const h =
        experts === undefined
          ? net.gatedLinear(x, {
              ...project(
                `${own}.gateUp`,
                hiddenSize,
                [[`${own}.mlp.gate_proj`, intermediateSize], up],
                false,
              ),
              activation,
            })
          : net.linear(x, { ...project(`${own}.up`, hiddenSize, [up], mlpBias), activation });
      const down: [string, number] = [`${own}.mlp.down_proj`, hiddenSize];
      net.addLinear(x, h, project(`${own}.down`, intermediateSize, [down], mlpBias));
    }
    x = norm(x, `${own}.outputNorm`, `${own}.post_mlp_layernorm`);
  }
  return net.build(encoderHead(net, x, encoder.head, epsilon));
}

/** x with the mixture of its experts added, and a bias that all of them share, where there is one: the one row of a table of token types, since there is one. */
function withExperts(
  net: NetworkBuilder,
  x: ValueRef,
  own: string,
  { hiddenSize, activation }: ModelConfig,
  { count, used, width, normalize, withoutBias }: ExpertsConfig,
): ValueRef {
  const matrix = (name: string, columns: number, source: string, rows: number) =>
    projection(net, `${own}.${name}`, columns, [[`${own}.mlp.${source}`, rows]], false);
  const scores = net.linear(x, matrix('router', hiddenSize, 'router.layer', count));
  const numbers = Array.from({ length: count }, (_, expert) => expert);
  const ups = numbers.map((e) => matrix(`experts.${e}.up`, hiddenSize, `experts.${e}.up_proj`, width));
  const downs = numbers.map((e) => matrix(`experts.${e}.down`, width, `experts.${e}.down_proj`, hiddenSize));
  const sum = net.withExperts(x, scores, {
    gateUp: ups.map(({ weight }) => weight),
    down: downs.map(({ weight }) => weight),
    used,
    normalize,
    ungated: true,
    activation,
  });
  if (withoutBias) return sum;
  const bias = [{ name: `${own}.mlp.experts.bias`, rows: 1, columns: hiddenSize }];
  net.addEmbedding(sum, net.matrix(`${own}.expertBias`, bias), 'tokenTypes');
  return sum;
}
