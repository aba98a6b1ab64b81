import type { ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { addAttention, decoder, mlpInput } from './decoder-layers.js';

/**
 * Qwen2 with a mixture of experts in place of the MLP of its layers, together with one MLP that all tokens go
 * to. GLM-4.5 is the same network, of which larger models norm queries and keys, and the first layers have no
 * experts.
 */
export function qwen2moe(config: ModelConfig): NetworkPlan {
  const { attentionBias: biased, headNorms } = config;
  return decoder(config, (parts, x, layer) => {
    const norm = (qkv: ValueRef) => headNorms && parts.normQueriesAndKeys(qkv, layer);
    addAttention(parts, x, layer, { biased, outputBiased: false, norm });
    parts.addMlp(x, mlpInput(parts, x, layer), layer);
  });
}
