import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { decoder } from './decoder-layers.js';

/**
 * OLMo 2 and 3: no norm before the halves of a layer but one after each, and a norm over all queries of a token together, another
 * over all keys. OLMo 3 has a window in most layers, and scales RoPE in the others alone.
 *
 *   x -> [q k v -> norms -> attention -> output -> norm + x -> gated MLP -> down -> norm + x] ... -> norm -> logits
 */
export function olmo2(config: ModelConfig): NetworkPlan {
  const { attentionBias } = config;
  return decoder(config, (parts, x, layer) => {
    const { net } = parts;
    const qkv = parts.qkv(x, layer, attentionBias);
    parts.normAllQueriesAndKeys(qkv, layer);
    const attended = net.linear(parts.attention(qkv, layer), parts.attentionOutput(layer, attentionBias));
    parts.addNorm(x, attended, layer, 'attentionOutputNorm', 'post_attention_layernorm');

    const mlpOutput = net.linear(parts.gatedUp(x, layer, false), parts.down(layer, false));
    parts.addNorm(x, mlpOutput, layer, 'mlpOutputNorm', 'post_feedforward_layernorm');
  });
}
