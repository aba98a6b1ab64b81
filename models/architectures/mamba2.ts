import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { decoder } from './decoder-layers.js';
import { addScan } from './scan-layer.js';

/** Mamba2 (https://arxiv.org/abs/2405.21060): each layer is a selective scan, and none attends. */
export function mamba2(config: ModelConfig): NetworkPlan {
  return decoder(config, (parts, x, layer) => {
    const input = parts.norm(x, layer, 'scanInputNorm', 'input_layernorm');
    addScan(parts, config, x, input, layer, config.rmsNormEpsilon);
  });
}
