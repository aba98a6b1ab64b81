import type { ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';
import { withoutResidualScale } from './granite.js';
import { addScan } from './scan-layer.js';

/**
 * Granite 4: Granite's factors, and layers of which most may have a selective scan in the place of attention; RoPE may be missing. Each layer
 * has one MLP, with or without a mixture of experts.
 */
export function granite4(given: ModelConfig): NetworkPlan {
  const { config, embeddingScale } = withoutResidualScale(given);
  const { attentionBias } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed(embeddingScale);
  for (let layer = 0; layer < config.numLayers; layer++) {
    const input = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    if (parts.attends(layer)) {
      const attended = parts.attention(parts.qkv(input, layer, attentionBias), layer);
      net.addLinear(x, attended, parts.attentionOutput(layer, attentionBias));
      // The norm inside a scan is not of the sum that is scaled.
    } else addScan(parts, config, x, input, layer, given.rmsNormEpsilon);
    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm');
    if (config.experts !== undefined) parts.addMixture(x, mlpInput, layer);
    addSharedMlp(parts, config, x, mlpInput, layer);
  }
  return parts.build(parts.logits(x));
}

/** Names of a layer's projections by the rows of the one that its files have. */
export const SHARED_MLP = ['shared_mlp.gate', 'shared_mlp.up'] as const;

function addSharedMlp(
  parts: DecoderParts,
  { intermediateSize, hiddenSize }: ModelConfig,
  x: ValueRef,
  input: ValueRef,
  layer: number,
): void {
  const both = SHARED_MLP.map((name): [string, number] => [name, intermediateSize]);
  const output: [string, number][] = [['shared_mlp.output_linear', hiddenSize]];
  const gated = parts.gatedUp(input, layer, false, both);
  parts.net.addLinear(x, gated, parts.projection(layer, 'down', intermediateSize, false, output));
}
