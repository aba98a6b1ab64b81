import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { addAttention, addGatedMlp, decoder } from './decoder-layers.js';

/** Hunyuan, dense: Llama's layers, with an RMSNorm over each head of the queries and keys after RoPE has turned them. */
export function hunyuan(config: ModelConfig): NetworkPlan {
  const { attentionBias: biased } = config;
  return decoder(config, (parts, x, layer) => {
    const turned = () => parts.turnedNorms(layer, 'self_attn.query_layernorm', 'self_attn.key_layernorm');
    addAttention(parts, x, layer, { biased, turned });
    addGatedMlp(parts, x, layer);
  });
}
