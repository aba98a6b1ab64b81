import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * Mixtral: Mistral's layers with a mixture of experts in place of the MLP, and no biases. Its window, if it has one, is the same in all
 * layers, so the network need not know it (ModelConfig.slidingWindow).
 */
export function mixtral(config: ModelConfig): NetworkPlan {
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const attended = parts.attention(parts.qkv(attentionInput, layer, false), layer);
    net.addLinear(x, attended, parts.attentionOutput(layer, false));

    parts.addMixture(x, parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm'), layer);
  }
  return parts.build(parts.logits(x));
}
