import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { decoder } from './decoder-layers.js';

/**
 * EXAONE 4: no norm before the halves of a layer but one after each, and one over each head of queries and keys. Where
 * most layers have a window, the others have no RoPE.
 */
export function exaone4(config: ModelConfig): NetworkPlan {
  return decoder(config, (parts, x, layer) => {
    const { net } = parts;
    const qkv = parts.qkv(x, layer, false);
    parts.normQueriesAndKeys(qkv, layer);
    const attended = net.linear(parts.attention(qkv, layer), parts.attentionOutput(layer, false));
    parts.addNorm(x, attended, layer, 'attentionOutputNorm', 'post_attention_layernorm');

    const mlpOutput = net.linear(parts.gatedUp(x, layer, false), parts.down(layer, false));
    parts.addNorm(x, mlpOutput, layer, 'mlpOutputNorm', 'post_feedforward_layernorm');
  });
}
