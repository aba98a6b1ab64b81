import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/** OLMoE: a norm over all queries of a token together, another over all keys, and a mixture of experts in place of each layer's MLP. */
export function olmoe(config: ModelConfig): NetworkPlan {
  const { attentionBias } = config;
  const parts = new DecoderParts(config);
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const qkv = parts.qkv(parts.norm(x, layer, 'attentionNorm', 'input_layernorm'), layer, attentionBias);
    parts.normAllQueriesAndKeys(qkv, layer);
    parts.net.addLinear(x, parts.attention(qkv, layer), parts.attentionOutput(layer, attentionBias));

    parts.addMlp(x, parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm'), layer);
  }
  return parts.build(parts.logits(x));
}
