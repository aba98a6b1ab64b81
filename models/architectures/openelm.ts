import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { addGatedMlp, decoder } from './decoder-layers.js';

/**
 * OpenELM: Llama's layers with an RMSNorm over each head of the queries and keys, where layers differ in their heads and in the width of
 * their MLP. Checkpoints hold queries, keys and values as one tensor.
 */
export function openelm(config: ModelConfig): NetworkPlan {
  const { headDim } = config;
  return decoder(config, (parts, x, layer) => {
    const { net } = parts;
    const { numHeads, numKvHeads } = parts.shapeOf(layer);
    const rows = (numHeads + 2 * numKvHeads) * headDim;
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const weight = parts.projection(layer, 'qkv', x.width, false, [['self_attn.qkv_proj', rows]]);
    const qkv = net.linear(attentionInput, weight);
    parts.normQueriesAndKeys(qkv, layer);
    net.addLinear(x, parts.attention(qkv, layer), parts.attentionOutput(layer, false));

    addGatedMlp(parts, x, layer);
  });
}
