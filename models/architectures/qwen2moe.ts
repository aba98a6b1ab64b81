import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * Qwen2 with a mixture of experts in place of the MLP of its layers, beside one MLP that all tokens go to. GLM-4.5 is the same network,
 * of which larger models norm queries and keys, and the first layers have no experts.
 */
export function qwen2moe(config: ModelConfig): NetworkPlan {
  const { attentionBias, headNorms } = config;
  const parts = new DecoderParts(config);
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const qkv = parts.qkv(parts.norm(x, layer, 'attentionNorm', 'input_layernorm'), layer, attentionBias);
    if (headNorms) parts.normQueriesAndKeys(qkv, layer);
    parts.net.addLinear(x, parts.attention(qkv, layer), parts.attentionOutput(layer, false));

    parts.addMlp(x, parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm'), layer);
  }
  return parts.build(parts.logits(x));
}
