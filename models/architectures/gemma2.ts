import type { ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { type AddLayer, decoder } from './decoder-layers.js';
import type { DecoderParts } from './decoder-parts.js';

/**
 * Gemma 2: scaled embeddings, a norm before and after each half of a layer, capped attention scores and
 * logits, a window in every other layer. The network's norm weights are the checkpoint's plus 1.
 *
 *   x -> [norm -> q k v -> attention -> output -> norm + x -> norm -> gated MLP -> down -> norm + x] ... -> norm -> logits
 */
export function gemma2(config: ModelConfig): NetworkPlan {
  return gemmaOfFourNorms(config, () => {});
}

/** Layers with four norms. @param norm of queries and keys before they turn */
export function gemmaOfFourNorms(
  config: ModelConfig,
  norm: (parts: DecoderParts, qkv: ValueRef, layer: number) => void,
): NetworkPlan {
  const { hiddenSize, attentionBias } = config;
  const addLayer: AddLayer = (parts, x, layer) => {
    const { net } = parts;
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const qkv = parts.qkv(attentionInput, layer, attentionBias);
    norm(parts, qkv, layer);
    const attended = parts.attention(qkv, layer);
    const attentionOutput = net.linear(attended, parts.attentionOutput(layer, attentionBias));
    parts.addNorm(x, attentionOutput, layer, 'attentionOutputNorm', 'post_attention_layernorm');

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'pre_feedforward_layernorm');
    const mlpOutput = net.linear(parts.gatedUp(mlpInput, layer, false), parts.down(layer, false));
    parts.addNorm(x, mlpOutput, layer, 'mlpOutputNorm', 'post_feedforward_layernorm');
  };
  return decoder(config, addLayer, Math.sqrt(hiddenSize));
}
