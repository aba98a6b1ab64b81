import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { addAttention, decoder, mlpInput } from './decoder-layers.js';

/**
 * gpt-oss: a window in every other layer, heads that may attend to nothing by a score without a value, and a mixture of clamped experts in
 * place of each layer's MLP; nearly everything has biases.
 */
export function gptOss(config: ModelConfig): NetworkPlan {
  const { attentionBias: biased } = config;
  return decoder(config, (parts, x, layer) => {
    addAttention(parts, x, layer, { biased });
    parts.addMixture(x, mlpInput(parts, x, layer), layer);
  });
}
