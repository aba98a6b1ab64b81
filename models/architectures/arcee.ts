import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { addAttention, decoder, mlpInput } from './decoder-layers.js';

/** Arcee's AFM: Llama's layers with an MLP that has no gate, whose activation is relu squared. */
export function arcee(config: ModelConfig): NetworkPlan {
  const { attentionBias: biased, mlpBias } = config;
  return decoder(config, (parts, x, layer) => {
    addAttention(parts, x, layer, { biased });
    const up = parts.up(mlpInput(parts, x, layer), layer, mlpBias);
    parts.net.addLinear(x, up, parts.down(layer, mlpBias));
  });
}
