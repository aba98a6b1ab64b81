import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { decoder } from './decoder-layers.js';
import { addScan } from './scan-layer.js';

/**
 * Nemotron-H (https://arxiv.org/abs/2504.03624): each layer is one of a selective scan, attention without RoPE, an MLP without a gate whose
 * activation is relu squared, or a mixture of such MLPs together with one that all tokens go to.
 */
export function nemotronH(config: ModelConfig): NetworkPlan {
  const { mlpBias, rmsNormEpsilon } = config;
  return decoder(config, (parts, x, layer) => {
    const { net } = parts;
    const input = parts.norm(x, layer, 'inputNorm', 'input_layernorm');
    if (parts.attends(layer)) {
      const attended = parts.attention(parts.qkv(input, layer, false), layer);
      net.addLinear(x, attended, parts.attentionOutput(layer, false));
    } else if (config.experts?.layers?.[layer]) {
      parts.addMlp(x, input, layer);
    } else if (config.mlpLayers?.[layer]) {
      net.addLinear(x, parts.up(input, layer, mlpBias), parts.down(layer, mlpBias));
    } else addScan(parts, config, x, input, layer, rmsNormEpsilon);
  });
}
