import type { ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * Nemotron and Minitron, dense: LayerNorm with biases, an MLP without a gate whose activation is relu squared, and RoPE on a part of each
 * head. The network's norm weights are the checkpoint's plus 1.
 */
export function nemotron(config: ModelConfig): NetworkPlan {
  const { attentionBias, mlpBias } = config;
  const parts = new DecoderParts(config);
  const { net } = parts;
  const norm = (x: ValueRef, own: string, source: string) =>
    parts.layerNorm(x, own, source, { biased: true });
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const [own, source] = [`layers.${layer}`, `model.layers.${layer}`];
    const attentionInput = norm(x, `${own}.attentionNorm`, `${source}.input_layernorm`);
    const attended = parts.attention(parts.qkv(attentionInput, layer, attentionBias), layer);
    net.addLinear(x, attended, parts.attentionOutput(layer, attentionBias));

    const mlpInput = norm(x, `${own}.mlpNorm`, `${source}.post_attention_layernorm`);
    net.addLinear(x, parts.up(mlpInput, layer, mlpBias), parts.down(layer, mlpBias));
  }
  const last = norm(net.selectRows(x), 'finalNorm', 'model.norm');
  return parts.build(net.linear(last, { weight: parts.outputWeight() }));
}
