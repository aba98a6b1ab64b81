import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * OLMo 2 and 3: no norm before the halves of a layer but one after each, and a norm over all queries of a token together, another
 * over all keys. OLMo 3 has a window in most layers, and scales RoPE in the others alone.
 *
 *   x -> [q k v -> norms -> attention -> output -> norm + x -> gated MLP -> down -> norm + x] ... -> norm -> logits
 */
export function olmo2(config: ModelConfig): NetworkPlan {
  const { attentionBias } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const qkv = parts.qkv(x, layer, attentionBias);
    parts.normAllQueriesAndKeys(qkv, layer);
    const attended = net.linear(parts.attention(qkv, layer), parts.attentionOutput(layer, attentionBias));
    parts.addNorm(x, attended, layer, 'attentionOutputNorm', 'post_attention_layernorm');

    const mlpOutput = net.linear(parts.gatedUp(x, layer, false), parts.down(layer, false));
    parts.addNorm(x, mlpOutput, layer, 'mlpOutputNorm', 'post_feedforward_layernorm');
  }
  return parts.build(parts.logits(x));
}
