import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/** Gemma 1: Llama's layers with scaled embeddings. The network's norm weights are the checkpoint's plus 1. */
export function gemma(config: ModelConfig): NetworkPlan {
  const { hiddenSize, attentionBias } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed(Math.sqrt(hiddenSize));
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const attended = parts.attention(parts.qkv(attentionInput, layer, attentionBias), layer);
    net.addLinear(x, attended, parts.attentionOutput(layer, attentionBias));

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
    net.addLinear(x, parts.gatedUp(mlpInput, layer, false), parts.down(layer, false));
  }
  return parts.build(parts.logits(x));
}
