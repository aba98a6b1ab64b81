import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * Gemma 3 for text: Gemma 2's layers, with a norm over each head of queries and keys instead of the caps, and more
 * layers with a window than without. Layers with a window have a RoPE of their own, with a shorter period.
 */
export function gemma3(config: ModelConfig): NetworkPlan {
  const { hiddenSize, attentionBias } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed(Math.sqrt(hiddenSize));
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const qkv = parts.qkv(attentionInput, layer, attentionBias);
    parts.normQueriesAndKeys(qkv, layer);
    const attended = parts.attention(qkv, layer);
    const attentionOutput = net.linear(attended, parts.attentionOutput(layer, attentionBias));
    parts.addNorm(x, attentionOutput, layer, 'attentionOutputNorm', 'post_attention_layernorm');

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'pre_feedforward_layernorm');
    const mlpOutput = net.linear(parts.gatedUp(mlpInput, layer, false), parts.down(layer, false));
    parts.addNorm(x, mlpOutput, layer, 'mlpOutputNorm', 'post_feedforward_layernorm');
  }
  return parts.build(parts.logits(x));
}
