import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';
import { withoutResidualScale } from './granite.js';

/** Granite 4 whose layers all attend: Granite's, with gate and up as one tensor; RoPE may be missing. */
export function granite4(given: ModelConfig): NetworkPlan {
  const { config, embeddingScale } = withoutResidualScale(given);
  const { attentionBias, intermediateSize, hiddenSize } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed(embeddingScale);
  for (let layer = 0; layer < config.numLayers; layer++) {
    const attentionInput = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    const attended = parts.attention(parts.qkv(attentionInput, layer, attentionBias), layer);
    net.addLinear(x, attended, parts.attentionOutput(layer, attentionBias));

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
    const both: [string, number][] = [['shared_mlp.input_linear', 2 * intermediateSize]];
    const output: [string, number][] = [['shared_mlp.output_linear', hiddenSize]];
    const gated = parts.gatedUp(mlpInput, layer, false, both);
    net.addLinear(x, gated, parts.projection(layer, 'down', intermediateSize, false, output));
  }
  return parts.build(parts.logits(x));
}
