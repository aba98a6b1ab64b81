import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';
import { addScan } from './scan-layer.js';

/**
 * Falcon-H1 (https://arxiv.org/abs/2507.22448): attention and a selective scan of the same input, side by side in each layer, with factors on
 * their parts. That on an MLP's gate stands before the activation:
 *
 *   down(silu(m gate(h)) up(h)) d  =  down(silu(gate(m h)) up(m h) d / m)
 *
 * so it is in the weight of the norm that gives h, and the op of gate and up stays one.
 */
export function falconH1(config: ModelConfig): NetworkPlan {
  const { multipliers, rmsNormEpsilon } = config;
  const { attentionOut = 1, mlpGate = 1, mlpDown = 1 } = multipliers ?? {};
  const parts = new DecoderParts(config);
  const { net } = parts;
  const x = parts.embed(config.embeddingScale);
  for (let layer = 0; layer < config.numLayers; layer++) {
    const input = parts.norm(x, layer, 'attentionNorm', 'input_layernorm');
    addScan(parts, config, x, input, layer, rmsNormEpsilon);
    const attended = parts.attention(parts.qkv(input, layer, false), layer);
    net.scale(attended, attentionOut);
    net.addLinear(x, attended, parts.attentionOutput(layer, false));

    const mlpInput = parts.norm(x, layer, 'mlpNorm', 'post_attention_layernorm', mlpGate);
    const gated = parts.gatedUp(mlpInput, layer, false);
    net.scale(gated, mlpDown / mlpGate);
    net.addLinear(x, gated, parts.down(layer, false));
  }
  return parts.build(parts.logits(x));
}
