import type { ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * Cohere's Command R: both halves of a layer read the same norm, a LayerNorm without bias, and logits have a factor. In Cohere 2 (Command R7B
 * and A) most layers have a window, and the others no RoPE.
 *
 *   x -> [norm -> q k v -> attention -> output, and norm -> gated MLP -> down, + x] ... -> norm -> logits
 */
export function cohere(config: ModelConfig): NetworkPlan {
  const { attentionBias, rmsNormEpsilon, logitScale = 1 } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const norm = (x: ValueRef, own: string, source: string, factor = 1): ValueRef => {
    const scales = (scaledBy: number) => [{ name: `${source}.weight`, columns: x.width, factor: scaledBy }];
    // A bias of zeros: the op has no form without one.
    return net.layerNorm(
      x,
      net.vector(own, scales(factor)),
      net.vector(`${own}.bias`, scales(0)),
      rmsNormEpsilon,
    );
  };
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const input = norm(x, `layers.${layer}.norm`, `model.layers.${layer}.input_layernorm`);
    const attended = parts.attention(parts.qkv(input, layer, attentionBias), layer);
    const h = parts.gatedUp(input, layer, false);
    net.addLinear(x, attended, parts.attentionOutput(layer, attentionBias));
    net.addLinear(x, h, parts.down(layer, false));
  }
  const last = norm(net.selectRows(x), 'finalNorm', 'model.norm', logitScale);
  return parts.build(net.linear(last, { weight: parts.outputWeight() }));
}
