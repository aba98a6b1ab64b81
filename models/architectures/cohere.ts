import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * Cohere's Command R: both halves of a layer read the same norm, a LayerNorm without bias, and logits have a factor. Command R+ norms each
 * head of the queries and keys too. In Cohere 2 (Command R7B and A) most layers have a window, and the others no RoPE.
 *
 *   x -> [norm -> q k v -> attention -> output, and norm -> gated MLP -> down, + x] ... -> norm -> logits
 */
export function cohere(config: ModelConfig): NetworkPlan {
  const { attentionBias, ownHeadNorms = false, logitScale = 1 } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const input = parts.layerNorm(x, `layers.${layer}.norm`, `model.layers.${layer}.input_layernorm`);
    const qkv = parts.qkv(input, layer, attentionBias);
    if (ownHeadNorms) parts.layerNormQueriesAndKeys(qkv, layer);
    const attended = parts.attention(qkv, layer);
    const h = parts.gatedUp(input, layer, false);
    net.addLinear(x, attended, parts.attentionOutput(layer, attentionBias));
    net.addLinear(x, h, parts.down(layer, false));
  }
  const last = parts.layerNorm(net.selectRows(x), 'finalNorm', 'model.norm', { factor: logitScale });
  return parts.build(net.linear(last, { weight: parts.outputWeight() }));
}
