import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { addAttention, decoder, mlpInput } from './decoder-layers.js';

/**
 * Qwen3: Llama's layers, with an RMSNorm over each head of the queries and keys before RoPE turns them. The size of a
 * head is independent of the hidden size and the number of heads. Qwen3 MoE has a mixture of experts in the place of the MLP. The text model of Qwen3-VL adds levels of a picture's rows after its
 * first layers.
 */
export function qwen3(config: ModelConfig): NetworkPlan {
  const { attentionBias: biased } = config;
  return decoder(config, (parts, x, layer) => {
    addAttention(parts, x, layer, { biased, norm: (qkv) => parts.normQueriesAndKeys(qkv, layer) });
    parts.addMlp(x, mlpInput(parts, x, layer), layer);
    parts.addPromptLevel(x, layer);
  });
}
