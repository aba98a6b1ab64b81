import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * Gemma 2: scaled embeddings, a norm before and behind each half of a layer, capped attention scores and logits, a
 * window in every other layer. The network's norm weights are the checkpoint's plus 1.
 *
 *   x -> [norm -> q k v -> attention -> output -> norm + x -> norm -> gated MLP -> down -> norm + x] ... -> norm -> logits
 */
export function gemma2(config: ModelConfig): NetworkPlan {
  const { hiddenSize, attentionBias } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed(Math.sqrt(hiddenSize));
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const attended = parts.attention(parts.qkv(attentionInput, layer, attentionBias), layer);
    const attentionOutput = net.linear(attended, parts.attentionOutput(layer, attentionBias));
    parts.addNorm(x, attentionOutput, layer, 'attentionOutputNorm', 'post_attention_layernorm');

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'pre_feedforward_layernorm');
    const mlpOutput = net.linear(parts.gatedUp(mlpInput, layer, false), parts.down(layer, false));
    parts.addNorm(x, mlpOutput, layer, 'mlpOutputNorm', 'post_feedforward_layernorm');
  }
  return parts.build(parts.logits(x));
}
