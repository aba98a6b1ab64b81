import type { ModelConfig } from '../model-config.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import { ACTIVATIONS, checkHeads, specialTokens } from './config-values.js';

/** Makes the ModelConfig of GPT-2 from config.json, whose fields have names of their own. */
export function configOfGpt2(config: ConfigFields, generation: ConfigFields | null): ModelConfig {
  refuseUnsupported(config);
  const vocabSize = config.integer('vocab_size', 1, LIMITS.vocabSize);
  const hiddenSize = config.integer('n_embd', 1, LIMITS.width);
  const numHeads = config.integer('n_head', 1, LIMITS.heads);
  if (hiddenSize % numHeads !== 0)
    throw config.error('n_embd', `a multiple of the ${numHeads} attention heads`);
  const headDim = hiddenSize / numHeads;
  checkHeads(config.where, numHeads, numHeads, headDim);
  const activation = ACTIVATIONS.get(config.raw('activation_function') ?? 'gelu_new');
  if (!activation) throw config.error('activation_function', `one of ${[...ACTIVATIONS.keys()].join(', ')}`);
  return {
    architecture: 'gpt2',
    vocabSize,
    hiddenSize,
    intermediateSize: config.integer('n_inner', 1, LIMITS.width, 4 * hiddenSize),
    numLayers: config.integer('n_layer', 1, LIMITS.layers),
    numHeads,
    numKvHeads: numHeads,
    headDim,
    rmsNormEpsilon: config.positive('layer_norm_epsilon', 1e-5),
    activation,
    attentionBias: true,
    mlpBias: true,
    tieWordEmbeddings: config.boolean('tie_word_embeddings', true),
    maxPositions: config.integer('n_positions', 1, LIMITS.positions, 1024),
    slidingWindow: null,
    rope: { theta: 1, rotaryDim: 0, scaling: { type: 'none' } },
    ...specialTokens(config, generation, vocabSize),
  };
}

function refuseUnsupported(config: ConfigFields): void {
  for (const key of ['scale_attn_by_inverse_layer_idx', 'add_cross_attention']) {
    if (config.boolean(key, false)) throw config.error(key, 'false');
  }
  if (!config.boolean('scale_attn_weights', true)) throw config.error('scale_attn_weights', 'true');
}
