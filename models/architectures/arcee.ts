import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/** Arcee's AFM: Llama's layers with an MLP that has no gate, whose activation is relu squared. */
export function arcee(config: ModelConfig): NetworkPlan {
  const { attentionBias, mlpBias } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const attended = parts.attention(parts.qkv(attentionInput, layer, attentionBias), layer);
    net.addLinear(x, attended, parts.attentionOutput(layer, attentionBias));

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
    net.addLinear(x, parts.up(mlpInput, layer, mlpBias), parts.down(layer, mlpBias));
  }
  return parts.build(parts.logits(x));
}
