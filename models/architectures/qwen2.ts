import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { addAttention, addGatedMlp, decoder } from './decoder-layers.js';

/**
 * Qwen2 and Qwen2.5: Llama's layers with biases on queries, keys and values alone. Where the config says so, the upper
 * layers attend to a window only.
 */
export function qwen2(config: ModelConfig): NetworkPlan {
  return decoder(config, (parts, x, layer) => {
    addAttention(parts, x, layer, { biased: true, outputBiased: false });
    addGatedMlp(parts, x, layer);
  });
}
