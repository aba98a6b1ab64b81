import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { DecoderParts } from './decoder-parts.js';
import { addScan } from './scan-layer.js';

/** Mamba2 (https://arxiv.org/abs/2405.21060): each layer is a selective scan, and none attends. */
export function mamba2(config: ModelConfig): NetworkPlan {
  const parts = new DecoderParts(config);
  const x = parts.embed();
  for (let layer = 0; layer < config.numLayers; layer++) {
    const input = parts.norm(x, layer, 'scanInputNorm', 'input_layernorm');
    addScan(parts, config, x, input, layer, config.rmsNormEpsilon);
  }
  return parts.build(parts.logits(x));
}
