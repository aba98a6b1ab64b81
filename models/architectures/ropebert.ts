import { equalCaches } from '../../network/cache-layers.js';
import { NetworkBuilder, type ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { encoderHead, headWidth } from './encoder-head.js';
import { layerNorm, projection } from './parts.js';

/**
 * BERT's layers with RoPE in place of learned positions, and a gated MLP: nomic-embed (no biases), and GTE's NewModel (biases but for those
 * of the MLP's gate).
 *
 *   tokens + types -> norm -> [attention + x -> norm -> gated MLP + x -> norm] ... -> head
 */
export function ropebert(config: ModelConfig): NetworkPlan {
  const { hiddenSize, intermediateSize, vocabSize, numLayers, numHeads, headDim, activation } = config;
  const { attentionBias, mlpBias, rmsNormEpsilon: epsilon } = config;
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
    const both: [string, number][] = [
      [`${own}.mlp.gate_proj`, intermediateSize],
      [`${own}.mlp.up_proj`, intermediateSize],
    ];
    const h = net.gatedLinear(x, { ...project(`${own}.gateUp`, hiddenSize, both, false), activation });
    net.addLinear(
      x,
      h,
      project(`${own}.down`, intermediateSize, [[`${own}.mlp.down_proj`, hiddenSize]], mlpBias),
    );
    x = norm(x, `${own}.outputNorm`, `${own}.post_mlp_layernorm`);
  }
  return net.build(encoderHead(net, x, encoder.head, epsilon));
}
