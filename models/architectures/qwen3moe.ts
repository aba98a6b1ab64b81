import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/** Qwen3 with a mixture of experts in place of the MLP of its layers. */
export function qwen3moe(config: ModelConfig): NetworkPlan {
  const { attentionBias } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const qkv = parts.qkv(attentionInput, layer, attentionBias);
    parts.normQueriesAndKeys(qkv, layer);
    net.addLinear(x, parts.attention(qkv, layer), parts.attentionOutput(layer, attentionBias));

    parts.addMlp(x, parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm'), layer);
    parts.addPromptLevel(x, layer);
  }
  return parts.build(parts.logits(x));
}
