import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { addAttention, decoder, mlpInput } from './decoder-layers.js';

/** GLM-4 of 2024: Llama's layers with biases on queries, keys and values alone, gate and up as one tensor, and RoPE on half of each head. */
export function glm(config: ModelConfig): NetworkPlan {
  const { attentionBias: biased, intermediateSize } = config;
  return decoder(config, (parts, x, layer) => {
    addAttention(parts, x, layer, { biased, outputBiased: false });
    const input = mlpInput(parts, x, layer);
    const gated = parts.gatedUp(input, layer, false, [['mlp.gate_up_proj', 2 * intermediateSize]]);
    parts.net.addLinear(x, gated, parts.down(layer, false));
  });
}

/** GLM-4 of 2025 (0414): the same with a norm after each half of a layer too. */
export function glm4(config: ModelConfig): NetworkPlan {
  const { attentionBias, intermediateSize } = config;
  return decoder(config, (parts, x, layer) => {
    const { net } = parts;
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const attended = parts.attention(parts.qkv(attentionInput, layer, attentionBias), layer);
    const attentionOutput = net.linear(attended, parts.attentionOutput(layer, false));
    parts.addNorm(x, attentionOutput, layer, 'attentionOutputNorm', 'post_self_attn_layernorm');

    const input = mlpInput(parts, x, layer);
    const gated = parts.gatedUp(input, layer, false, [['mlp.gate_up_proj', 2 * intermediateSize]]);
    const mlpOutput = net.linear(gated, parts.down(layer, false));
    parts.addNorm(x, mlpOutput, layer, 'mlpOutputNorm', 'post_mlp_layernorm');
  });
}
