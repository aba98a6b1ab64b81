import type { ValueRef } from '../../network/network-builder.js';
import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';

/**
 * Phi-3.5-MoE: LayerNorm with biases, a mixture of experts in place of each layer's MLP, of which a row goes to two that are chosen one after
 * the other, and biases of the attention and of the logits where the config says so.
 */
export function phiMoe(config: ModelConfig): NetworkPlan {
  const { attentionBias, outputBias = false, vocabSize } = config;
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

    parts.addMixture(x, norm(x, `${own}.mlpNorm`, `${source}.post_attention_layernorm`), layer);
  }
  const last = norm(net.selectRows(x), 'finalNorm', 'model.norm');
  const ofLogits = { name: 'lm_head.bias', columns: vocabSize };
  const bias = outputBias ? { bias: net.vector('output.bias', [ofLogits]) } : {};
  return parts.build(net.linear(last, { weight: parts.outputWeight(), ...bias }));
}
