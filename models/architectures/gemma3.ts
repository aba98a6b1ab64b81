import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { gemmaOfFourNorms } from './gemma2.js';

/**
 * Gemma 3 for text: Gemma 2's layers, with a norm over each head of queries and keys instead of the caps, and more
 * layers with a window than without. Layers with a window have a RoPE of their own, with a shorter period.
 */
export function gemma3(config: ModelConfig): NetworkPlan {
  return gemmaOfFourNorms(config, (parts, qkv, layer) => parts.normQueriesAndKeys(qkv, layer));
}
