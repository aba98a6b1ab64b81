import type { ModelConfig } from '../../models/model-config.js';

/** A model of two layers with four experts, of which a token goes to two. */
export const expertsConfig = (changes: Partial<ModelConfig> = {}): ModelConfig => ({
  architecture: 'qwen3moe',
  vocabSize: 50,
  hiddenSize: 12,
  intermediateSize: 20,
  numLayers: 2,
  numHeads: 3,
  numKvHeads: 1,
  headDim: 6,
  rmsNormEpsilon: 1e-5,
  activation: 'silu',
  attentionBias: false,
  mlpBias: false,
  tieWordEmbeddings: false,
  maxPositions: 64,
  slidingWindow: null,
  rope: { theta: 10_000, rotaryDim: 6, scaling: { type: 'none' } },
  experts: { count: 4, used: 2, width: 8, normalize: true },
  bosTokenId: 1,
  eosTokenIds: [2],
  padTokenId: null,
  ...changes,
});
