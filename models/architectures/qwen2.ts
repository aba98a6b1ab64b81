import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * Qwen2 and Qwen2.5: Llama's layers with biases on queries, keys and values alone. Where the config says so, the upper
 * layers attend to a window only.
 */
export function qwen2(config: ModelConfig): NetworkPlan {
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const attended = parts.attention(parts.qkv(attentionInput, layer, true), layer);
    net.addLinear(x, attended, parts.attentionOutput(layer, false));

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
    net.addLinear(x, parts.gatedUp(mlpInput, layer, false), parts.down(layer, false));
  }
  return parts.build(parts.logits(x));
}
