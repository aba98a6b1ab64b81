import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * The Llama family: pre-norm decoder layers, grouped-query attention with RoPE, a gated MLP, RMSNorm, optional biases,
 * tied or untied output.
 *
 *   x -> [norm -> q k v -> attention -> output + x -> norm -> gated MLP -> down + x] ... -> norm -> logits
 */
export function llama(config: ModelConfig, embeddingScale = 1): NetworkPlan {
  const { attentionBias, attentionOutputBias = attentionBias, mlpBias } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed(embeddingScale);
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const attended = parts.attention(parts.qkv(attentionInput, layer, attentionBias), layer);
    net.addLinear(x, attended, parts.attentionOutput(layer, attentionOutputBias));

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
    net.addLinear(x, parts.gatedUp(mlpInput, layer, mlpBias), parts.down(layer, mlpBias));
  }
  return parts.build(parts.logits(x));
}
