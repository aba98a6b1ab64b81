import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * Qwen3: Llama's layers, with an RMSNorm over each head of the queries and keys before RoPE turns them. The size of a
 * head is independent of the hidden size and the number of heads. The text model of Qwen3-VL adds levels of a picture's rows after its
 * first layers.
 */
export function qwen3(config: ModelConfig): NetworkPlan {
  const { attentionBias } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const qkv = parts.qkv(attentionInput, layer, attentionBias);
    parts.normQueriesAndKeys(qkv, layer);
    net.addLinear(x, parts.attention(qkv, layer), parts.attentionOutput(layer, attentionBias));

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
    net.addLinear(x, parts.gatedUp(mlpInput, layer, false), parts.down(layer, false));
    parts.addPromptLevel(x, layer);
  }
  return parts.build(parts.logits(x));
}
