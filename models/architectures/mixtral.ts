import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { addAttention, decoder, mlpInput } from './decoder-layers.js';

/**
 * Mixtral: Mistral's layers with a mixture of experts in place of the MLP, and no biases. Its window, if it has one, is the same in all
 * layers, so the network need not know it (ModelConfig.slidingWindow).
 */
export function mixtral(config: ModelConfig): NetworkPlan {
  return decoder(config, (parts, x, layer) => {
    addAttention(parts, x, layer, {});
    parts.addMixture(x, mlpInput(parts, x, layer), layer);
  });
}
