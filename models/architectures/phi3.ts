import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { decoder } from './decoder-layers.js';

/**
 * Phi-3, Phi-3.5 and Phi-4-mini: Llama's network. Their checkpoints hold queries, keys and values as one tensor, gate
 * and up as another, in the order in which they are stacked here anyway. RoPE may turn only the first part of each
 * head.
 */
export function phi3(config: ModelConfig): NetworkPlan {
  const { numHeads, numKvHeads, headDim, hiddenSize, intermediateSize } = config;
  const qkvRows = (numHeads + 2 * numKvHeads) * headDim;
  return decoder(config, (parts, x, layer) => {
    const { net } = parts;
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const qkvWeight = parts.projection(layer, 'qkv', hiddenSize, false, [['self_attn.qkv_proj', qkvRows]]);
    const attended = parts.attention(net.linear(attentionInput, qkvWeight), layer);
    net.addLinear(x, attended, parts.attentionOutput(layer, false));

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
    const gated = parts.gatedUp(mlpInput, layer, false, [['mlp.gate_up_proj', 2 * intermediateSize]]);
    net.addLinear(x, gated, parts.down(layer, false));
  });
}
