import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { type AddLayer, addAttention, addGatedMlp, decoder } from './decoder-layers.js';

/**
 * The Llama family: pre-norm decoder layers, grouped-query attention with RoPE, a gated MLP, RMSNorm, optional biases,
 * tied or untied output.
 *
 *   x -> [norm -> q k v -> attention -> output + x -> norm -> gated MLP -> down + x] ... -> norm -> logits
 */
export function llama(config: ModelConfig, embeddingScale = 1): NetworkPlan {
  const { attentionBias: biased, attentionOutputBias: outputBiased = biased, mlpBias } = config;
  const addLayer: AddLayer = (parts, x, layer) => {
    addAttention(parts, x, layer, { biased, outputBiased });
    addGatedMlp(parts, x, layer, mlpBias);
  };
  return decoder(config, addLayer, embeddingScale);
}
