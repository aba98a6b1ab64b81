import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { addAttention, decoder, mlpInput } from './decoder-layers.js';

/** OLMoE: a norm over all queries of a token together, another over all keys, and a mixture of experts in place of each layer's MLP. */
export function olmoe(config: ModelConfig): NetworkPlan {
  const { attentionBias: biased } = config;
  return decoder(config, (parts, x, layer) => {
    addAttention(parts, x, layer, { biased, norm: (qkv) => parts.normAllQueriesAndKeys(qkv, layer) });
    parts.addMlp(x, mlpInput(parts, x, layer), layer);
  });
}
