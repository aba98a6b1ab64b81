import type { ModelConfig } from '../model-config.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import { specialTokens } from './config-values.js';
import { requireSilu, scanOf } from './scan-config.js';

/** Tokens of a sequence where nothing says how many: no layer has a limit. llama.cpp's converter writes the same. */
const USUAL_CONTEXT = 2 ** 20;

/** What a model has whose layers do not attend. */
export function withoutAttention(numLayers: number) {
  return {
    numHeads: 1,
    numKvHeads: 1,
    headDim: 1,
    intermediateSize: 1,
    attentionBias: false,
    mlpBias: false,
    slidingWindow: null,
    rope: { theta: 1, rotaryDim: 0, scaling: { type: 'none' } },
    attendingLayers: new Array<boolean>(numLayers).fill(false),
  } as const satisfies Partial<ModelConfig>;
}

/** Makes the ModelConfig of Mamba2, which has no fields of attention. */
export function configOfMamba2(
  config: ConfigFields,
  name: string,
  generation: ConfigFields | null,
): ModelConfig {
  if (name !== 'Mamba2ForCausalLM') throw config.error('architectures', 'Mamba2ForCausalLM');
  const vocabSize = config.integer('vocab_size', 1, LIMITS.vocabSize, 32_768);
  const hiddenSize = config.integer('hidden_size', 1, LIMITS.width, 4096);
  const numLayers = config.integer('num_hidden_layers', 1, LIMITS.layers, 64);
  requireSilu(config, 'hidden_act');
  const expand = config.integer('expand', 1, LIMITS.width, 2);
  const fields = {
    heads: ['num_heads', 128],
    headDim: ['head_dim', 64],
    groups: ['n_groups', 8],
    stateDim: ['state_size', 128],
    taps: 'conv_kernel',
    convBias: 'use_conv_bias',
    inputBias: 'use_bias',
    outputBias: 'use_bias',
  } as const;
  return {
    architecture: 'mamba2',
    vocabSize,
    hiddenSize,
    numLayers,
    ...withoutAttention(numLayers),
    rmsNormEpsilon: config.positive('layer_norm_epsilon', 1e-5),
    activation: 'silu',
    tieWordEmbeddings: config.boolean('tie_word_embeddings', false),
    maxPositions: config.integer('max_position_embeddings', 1, LIMITS.positions, USUAL_CONTEXT),
    ...scanOf(config, fields, expand * hiddenSize, 'behindGate'),
    ...specialTokens(config, generation, vocabSize),
  };
}
