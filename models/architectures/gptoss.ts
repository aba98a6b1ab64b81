import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * gpt-oss: a window in every other layer, heads that may attend to nothing by a score without a value, and a mixture of clamped experts in
 * place of each layer's MLP; nearly everything has biases.
 */
export function gptOss(config: ModelConfig): NetworkPlan {
  const { attentionBias } = config;
  const parts = new DecoderParts(config);
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const qkv = parts.qkv(parts.norm(x, layer, 'attentionNorm', 'input_layernorm'), layer, attentionBias);
    parts.net.addLinear(x, parts.attention(qkv, layer), parts.attentionOutput(layer, attentionBias));

    parts.addMixture(x, parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm'), layer);
  }
  return parts.build(parts.logits(x));
}
