import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { llama } from './llama.js';

/**
 * Mistral: Llama's network. Its sliding window is the same in all layers, so the network need not know it: the engine
 * keeps only a window of each sequence in its KV cache (ModelConfig.slidingWindow).
 */
export function mistral(config: ModelConfig): NetworkPlan {
  return llama(config);
}
