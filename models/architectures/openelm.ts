import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * OpenELM: Llama's layers with an RMSNorm over each head of the queries and keys, where layers differ in their heads and in the width of
 * their MLP. Checkpoints hold queries, keys and values as one tensor.
 */
export function openelm(config: ModelConfig): NetworkPlan {
  const { headDim } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const { numHeads, numKvHeads } = parts.shapeOf(layer);
    const rows = (numHeads + 2 * numKvHeads) * headDim;
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const weight = parts.projection(layer, 'qkv', x.width, false, [['self_attn.qkv_proj', rows]]);
    const qkv = net.linear(attentionInput, weight);
    parts.normQueriesAndKeys(qkv, layer);
    net.addLinear(x, parts.attention(qkv, layer), parts.attentionOutput(layer, false));

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
    net.addLinear(x, parts.gatedUp(mlpInput, layer, false), parts.down(layer, false));
  }
  return parts.build(parts.logits(x));
}
