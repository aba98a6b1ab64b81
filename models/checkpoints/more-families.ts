import { ConfigFields, LIMITS } from './config-fields.js';
import type { DecoderFamily } from './decoder-family.js';
import { isObject, type JsonObject } from './file-reading.js';
import { slidingWindow, windowFields, windowsByType } from './layer-windows.js';
import { givenRope, ropeOfHuggingFace, turnedPairs } from './rope-config.js';
import { ropesByType } from './ropes-by-type.js';

type Read = DecoderFamily['read'];

const LAYER_NORM: [string, number] = ['layer_norm_eps', 1e-5];

/** OLMo 2, and OLMo 3 with a window in three of four layers, where RoPE is never scaled. */
const olmo2: Read = (config, { headDim, maxPositions }) => ({
  slidingWindow: null,
  rope: ropeOfHuggingFace(config, headDim, maxPositions),
});
const olmo3: Read = (config, { numLayers, headDim, maxPositions }) => {
  const windows = windowsByType(config, numLayers, slidingWindow(config, 4096), (layer) => layer % 4 !== 3);
  const theta = config.positive('rope_theta', 500_000);
  return {
    ...windowFields(windows),
    ...(windows.some((window) => window !== null) ? { layerWindows: windows } : {}),
    ...ropesByType(config, headDim, maxPositions, { theta, localTheta: theta }),
  };
};

const smollm3: Read = (config, { numLayers, headDim, maxPositions }) => {
  const layersWithoutRope = withoutRope(config, numLayers);
  const window = config.boolean('use_sliding_window', false) ? slidingWindow(config, null) : null;
  return {
    ...windowFields(windowsByType(config, numLayers, window, (layer) => layersWithoutRope[layer]!)),
    rope: ropeOfHuggingFace(config, headDim, maxPositions, { theta: 2_000_000 }),
    layersWithoutRope,
  };
};

/** no_rope_layers has a 1 for each layer with RoPE; without it the last of each no_rope_layer_interval has none. */
function withoutRope(config: ConfigFields, numLayers: number): boolean[] {
  const given = config.raw('no_rope_layers');
  if (given === undefined) {
    const interval = config.integer('no_rope_layer_interval', 1, LIMITS.layers, 4);
    return Array.from({ length: numLayers }, (_, layer) => (layer + 1) % interval === 0);
  }
  if (!Array.isArray(given) || given.length < numLayers || !given.every((one) => one === 0 || one === 1))
    throw config.error('no_rope_layers', `a list of 0 and 1 for each of ${numLayers} layers`);
  return given.slice(0, numLayers).map((one) => one === 0);
}

/** Layers with a window have RoPE; the others have none if there are any with a window. */
const exaone4: Read = (config, { numLayers, headDim, maxPositions }) => {
  const rope = ropeOfHuggingFace(config, headDim, maxPositions);
  const window = slidingWindow(config, 4096);
  if (window === null) return { slidingWindow: null, rope };
  const given = config.raw('sliding_window_pattern');
  if (typeof given === 'string' && config.raw('layer_types') === undefined)
    throw config.error('sliding_window_pattern', 'a number, or layer_types there');
  const pattern =
    typeof given === 'string' ? 4 : config.integer('sliding_window_pattern', 1, LIMITS.layers, 4);
  const windows = windowsByType(config, numLayers, window, (layer) => (layer + 1) % pattern !== 0);
  return {
    ...windowFields(windows),
    layersWithoutRope: windows.map((one) => one === null),
    rope,
  };
};

/** RoPE turns pairs of neighbours in the first half of each head; rows of all pairs are put apart. */
const glm: Read = (config, { headDim, maxPositions }) => {
  const rope = ropeOfHuggingFace(config, headDim, maxPositions, { partial: 0.5 });
  return {
    slidingWindow: null,
    attentionBias: config.boolean('attention_bias', true),
    rope: turnedPairs('glm', headDim, rope),
  };
};

const ministral: Read = (config, { numLayers, headDim, maxPositions }) => ({
  ...windowFields(windowsByType(config, numLayers, slidingWindow(config, 4096), () => true)),
  rope: ropeOfHuggingFace(config, headDim, maxPositions),
});

/** RoPE of Ministral 3 where its config has none. */
const MINISTRAL3_ROPE = {
  rope_type: 'yarn',
  rope_theta: 1e6,
  factor: 16,
  original_max_position_embeddings: 16384,
  mscale_all_dim: 1,
  mscale: 1,
  llama_4_scaling_beta: 0.1,
};

/** Queries beyond the original context are scaled by their position in transformers, which no op does: the context ends there. */
const ministral3: Read = (config, { headDim, maxPositions }) => {
  const given = givenRope(config) ?? MINISTRAL3_ROPE;
  const parameters = isObject(given) ? given : {};
  const rope = ropeOfHuggingFace(config, headDim, maxPositions, { ...(isObject(given) && { parameters }) });
  const { scaling } = rope;
  const isScaled = parameters.llama_4_scaling_beta != null && 'originalMaxPositions' in scaling;
  return {
    slidingWindow: slidingWindow(config, null),
    rope,
    ...(isScaled && { maxPositions: Math.min(maxPositions, scaling.originalMaxPositions) }),
  };
};

const seedOss: Read = (config, { headDim, maxPositions }) => ({
  slidingWindow: null,
  attentionBias: config.boolean('attention_bias', true),
  attentionOutputBias: config.boolean('attention_out_bias', false),
  rope: ropeOfHuggingFace(config, headDim, maxPositions),
});

const ernie45: Read = (config, { headDim, maxPositions }) => {
  const bias = config.boolean('use_bias', false);
  return {
    slidingWindow: null,
    attentionBias: bias,
    mlpBias: bias,
    rope: ropeOfHuggingFace(config, headDim, maxPositions, { theta: 500_000 }),
  };
};

export const graniteFields: Read = (config, { headDim, maxPositions }) => ({
  slidingWindow: null,
  embeddingScale: config.positive('embedding_multiplier', 1),
  residualScale: config.positive('residual_multiplier', 1),
  attentionScale: config.positive('attention_multiplier', 1),
  logitScale: 1 / config.positive('logits_scaling', 1),
  rope: ropeOfHuggingFace(config, headDim, maxPositions),
});

/** RoPE turns pairs of neighbours. */
const cohere: Read = (config, { headDim, maxPositions }) => ({
  slidingWindow: null,
  ...(config.boolean('use_qk_norm', false) && { ownHeadNorms: true }),
  logitScale: config.positive('logit_scale', 0.0625),
  rope: ropeOfHuggingFace(config, headDim, maxPositions, { theta: 500_000 }),
});

const MAX_ALPHA = 1e6;

/** A dynamic RoPE with an alpha has a longer base at every length. */
const hunyuan: Read = (config, { headDim, maxPositions }) => {
  const given = givenRope(config);
  const type = isObject(given) ? (given.rope_type ?? given.type) : undefined;
  const alpha = isObject(given) && type === 'dynamic' ? given.alpha : undefined;
  const biases = { mlpBias: false, slidingWindow: null };
  if (!alpha) return { ...biases, rope: ropeOfHuggingFace(config, headDim, maxPositions) };
  if (typeof alpha !== 'number' || !(alpha >= 1 && alpha <= MAX_ALPHA))
    throw new ConfigFields(`${config.where}: RoPE`, given as JsonObject).error(
      'alpha',
      `a number from 1 to ${MAX_ALPHA}`,
    );
  const parameters = { ...(given as JsonObject), rope_type: 'default' };
  const rope = ropeOfHuggingFace(config, headDim, maxPositions, { parameters });
  return { ...biases, rope: { ...rope, theta: rope.theta * alpha ** (headDim / (headDim - 2)) } };
};

/** Factors by depth and by width; attention is dense up to dense_len tokens of a sparse_config, where the context ends. */
const minicpm: Read = (config, { numLayers, headDim, maxPositions }) => {
  const sparse = config.raw('sparse_config');
  const dense = isObject(sparse) ? sparse.dense_len : undefined;
  if (sparse !== undefined && !(Number.isInteger(dense) && (dense as number) > 0))
    throw config.error(
      'sparse_config',
      'absent, or one with a dense_len, up to which all tokens are attended to',
    );
  const hiddenSize = config.integer('hidden_size', 1, LIMITS.width);
  return {
    slidingWindow: null,
    mlpBias: false,
    embeddingScale: config.positive('scale_emb', 1),
    residualScale: config.positive('scale_depth', 1) / Math.sqrt(numLayers),
    logitScale: config.positive('dim_model_base', 1) / hiddenSize,
    rope: ropeOfHuggingFace(config, headDim, maxPositions),
    ...(dense !== undefined && { maxPositions: Math.min(maxPositions, dense as number) }),
  };
};

/** Layers without a window have no RoPE. */
const cohere2: Read = (config, { numLayers, headDim, maxPositions }) => {
  const pattern = config.integer('sliding_window_pattern', 1, LIMITS.layers, 4);
  const isSliding = (layer: number) => (layer + 1) % pattern !== 0;
  const windows = windowsByType(config, numLayers, slidingWindow(config, 4096), isSliding);
  return {
    ...windowFields(windows),
    layersWithoutRope: windows.map((window) => window === null),
    logitScale: config.positive('logit_scale', 0.0625),
    rope: ropeOfHuggingFace(config, headDim, maxPositions),
  };
};

/** Families by ModelConfig.architecture, besides those of decoder-families.ts. */
export const MORE_FAMILIES: Readonly<Record<string, DecoderFamily>> = {
  smollm3: { tied: true, read: smollm3 },
  olmo2: { epsilon: ['rms_norm_eps', 1e-5], read: olmo2 },
  olmo3: { epsilon: ['rms_norm_eps', 1e-5], read: olmo3 },
  exaone4: { epsilon: ['rms_norm_eps', 1e-5], read: exaone4 },
  granite: { read: graniteFields },
  cohere: { tied: true, epsilon: LAYER_NORM, read: cohere },
  hunyuan: { epsilon: ['rms_norm_eps', 1e-5], read: hunyuan },
  minicpm: { tied: true, read: minicpm },
  cohere2: { tied: true, epsilon: LAYER_NORM, read: cohere2 },
  glm: { headDim: 128, epsilon: ['rms_norm_eps', 1.5625e-7], read: glm },
  glm4: { headDim: 128, epsilon: ['rms_norm_eps', 1.5625e-7], read: glm },
  ministral: { read: ministral },
  ministral3: { headDim: 128, epsilon: ['rms_norm_eps', 1e-5], read: ministral3 },
  seed_oss: { headDim: 128, read: seedOss },
  ernie4_5: { headDim: 128, tied: true, epsilon: ['rms_norm_eps', 1e-5], read: ernie45 },
};
