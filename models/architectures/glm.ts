import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/** GLM-4 of 2024: Llama's layers with biases on queries, keys and values alone, gate and up as one tensor, and RoPE on half of each head. */
export function glm(config: ModelConfig): NetworkPlan {
  const { attentionBias, intermediateSize } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const attended = parts.attention(parts.qkv(attentionInput, layer, attentionBias), layer);
    net.addLinear(x, attended, parts.attentionOutput(layer, false));

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
    const gated = parts.gatedUp(mlpInput, layer, false, [['mlp.gate_up_proj', 2 * intermediateSize]]);
    net.addLinear(x, gated, parts.down(layer, false));
  }
  return parts.build(parts.logits(x));
}

/** GLM-4 of 2025 (0414): the same with a norm after each half of a layer too. */
export function glm4(config: ModelConfig): NetworkPlan {
  const { attentionBias, intermediateSize } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const attended = parts.attention(parts.qkv(attentionInput, layer, attentionBias), layer);
    const attentionOutput = net.linear(attended, parts.attentionOutput(layer, false));
    parts.addNorm(x, attentionOutput, layer, 'attentionOutputNorm', 'post_self_attn_layernorm');

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
    const gated = parts.gatedUp(mlpInput, layer, false, [['mlp.gate_up_proj', 2 * intermediateSize]]);
    const mlpOutput = net.linear(gated, parts.down(layer, false));
    parts.addNorm(x, mlpOutput, layer, 'mlpOutputNorm', 'post_mlp_layernorm');
  }
  return parts.build(parts.logits(x));
}
