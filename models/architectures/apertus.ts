import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { decoder } from './decoder-layers.js';

/**
 * Apertus: Llama's layers with an RMSNorm over each head of the queries and keys, and an MLP without a gate, whose activation is an xIELU
 * with numbers of each layer's own.
 */
export function apertus(config: ModelConfig): NetworkPlan {
  const { attentionBias, xielu } = config;
  return decoder(config, (parts, x, layer) => {
    const { net } = parts;
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'attention_layernorm');
    const qkv = parts.qkv(attentionInput, layer, attentionBias);
    parts.normQueriesAndKeys(qkv, layer);
    net.addLinear(x, parts.attention(qkv, layer), parts.attentionOutput(layer, attentionBias));

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'feedforward_layernorm');
    const h = parts.up(mlpInput, layer, false);
    const numbers = xielu?.[layer];
    if (numbers !== undefined) net.xielu(h, numbers);
    net.addLinear(x, h, parts.down(layer, false));
  });
}
