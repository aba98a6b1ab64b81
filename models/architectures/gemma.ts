import type { NetworkPlan } from '../../network/plan.js';
import type { ModelConfig } from '../model-config.js';
import { type AddLayer, addAttention, addGatedMlp, decoder } from './decoder-layers.js';

/** Gemma 1: Llama's layers with scaled embeddings. The network's norm weights are the checkpoint's plus 1. */
export function gemma(config: ModelConfig): NetworkPlan {
  const { hiddenSize, attentionBias: biased } = config;
  const addLayer: AddLayer = (parts, x, layer) => {
    addAttention(parts, x, layer, { biased });
    addGatedMlp(parts, x, layer);
  };
  return decoder(config, addLayer, Math.sqrt(hiddenSize));
}
