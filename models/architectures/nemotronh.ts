import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';
import { addScan } from './scan-layer.js';

/**
 * Nemotron-H (https://arxiv.org/abs/2504.03624): each layer is one of a selective scan, attention without RoPE, an MLP without a gate whose
 * activation is relu squared, or a mixture of such MLPs beside one that all tokens go to.
 */
export function nemotronH(config: ModelConfig): NetworkPlan {
  const { mlpBias, rmsNormEpsilon } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const input = parts.norm(x, layer, 'inputNorm', 'input_layernorm');
    if (parts.attends(layer)) {
      const attended = parts.attention(parts.qkv(input, layer, false), layer);
      net.addLinear(x, attended, parts.attentionOutput(layer, false));
    } else if (config.experts?.layers?.[layer]) {
      parts.addMlp(x, input, layer);
    } else if (config.mlpLayers?.[layer]) {
      net.addLinear(x, parts.up(input, layer, mlpBias), parts.down(layer, mlpBias));
    } else addScan(parts, config, x, input, layer, rmsNormEpsilon);
  }
  return parts.build(parts.logits(x));
}
