import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/** Hunyuan, dense: Llama's layers, with an RMSNorm over each head of the queries and keys after RoPE has turned them. */
export function hunyuan(config: ModelConfig): NetworkPlan {
  const { attentionBias } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const norms = parts.turnedNorms(layer, 'self_attn.query_layernorm', 'self_attn.key_layernorm');
    const attended = parts.attention(parts.qkv(attentionInput, layer, attentionBias), layer, norms);
    net.addLinear(x, attended, parts.attentionOutput(layer, attentionBias));

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
    net.addLinear(x, parts.gatedUp(mlpInput, layer, false), parts.down(layer, false));
  }
  return parts.build(parts.logits(x));
}
