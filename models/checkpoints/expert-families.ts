import type { ClampedSwiglu } from '../../network/plan.js';
import type { RopeConfig } from '../../network/rope.js';
import { ConfigFields } from './config-fields.js';
import type { DecoderFamily, KnownDimensions } from './decoder-family.js';
import type { JsonObject } from './file-reading.js';
import { slidingWindow, windowFields, windowsByType } from './layer-windows.js';
import { givenRope, ropeOfHuggingFace } from './rope-config.js';

type Read = DecoderFamily['read'];

/** The window of models whose layers all have one, where there is one at all. */
function windowOfAllLayers(config: ConfigFields, window: number | null): number | null {
  const layerTypes = config.raw('layer_types');
  const type = window === null ? 'full_attention' : 'sliding_attention';
  if (layerTypes !== undefined && !(Array.isArray(layerTypes) && layerTypes.every((one) => one === type))) {
    throw config.error('layer_types', `${type} for each layer: mixed layers are not supported`);
  }
  return window;
}

const qwen: Read = (config, { headDim, maxPositions }) => {
  if (config.raw('use_mrope') === true) throw config.error('use_mrope', 'false');
  const window = config.boolean('use_sliding_window', false) ? slidingWindow(config, 4096) : null;
  return {
    slidingWindow: windowOfAllLayers(config, window),
    rope: ropeOfHuggingFace(config, headDim, maxPositions),
  };
};

const qwen2: Read = (config, dimensions) => {
  if (config.boolean('use_sliding_window', false))
    throw config.error('use_sliding_window', 'false: windows in every other layer are not supported');
  return { ...qwen(config, dimensions), attentionBias: config.boolean('qkv_bias', true) };
};

const olmoe: Read = (config, { headDim, maxPositions }) => {
  if (config.raw('clip_qkv') !== undefined)
    throw config.error('clip_qkv', 'absent: queries, keys and values that are clamped are not supported');
  return { slidingWindow: null, rope: ropeOfHuggingFace(config, headDim, maxPositions) };
};

const glm4: Read = (config, { headDim, maxPositions }) => ({
  slidingWindow: null,
  ...(config.boolean('use_qk_norm', false) && { headNorms: true }),
  rope: ropeOfHuggingFace(config, headDim, maxPositions, { partial: 0.5 }),
});

/** As transformers has it where config.json says nothing. */
const GPT_OSS_ROPE = {
  rope_type: 'yarn',
  factor: 32,
  beta_fast: 32,
  beta_slow: 1,
  truncate: false,
  original_max_position_embeddings: 4096,
};

const gptOss: Read = (config, { numLayers, headDim, maxPositions }) => {
  const isSliding = (layer: number) => layer % 2 === 0;
  const parameters = givenRope(config) === undefined ? GPT_OSS_ROPE : undefined;
  return {
    ...windowFields(windowsByType(config, numLayers, slidingWindow(config, 128), isSliding)),
    attentionBias: config.boolean('attention_bias', true),
    sinkLogits: true,
    rope: ropeOfHuggingFace(config, headDim, maxPositions, {
      theta: 150_000,
      ...(parameters && { parameters }),
    }),
  };
};

/** What a config.json of Phi-3.5-MoE says besides its dimensions and experts. */
const phiMoe: Read = (config, dimensions) => ({
  slidingWindow: slidingWindow(config, null),
  outputBias: config.boolean('lm_head_bias', false),
  rope: phiMoeRope(config, dimensions),
});

/** What gpt-oss clamps by where nothing says otherwise, as no GGUF does. */
const GPT_OSS_CLAMP: ClampedSwiglu = { alpha: 1.702, limit: 7 };

// transformers 5 writes the second name.
const COUNT = ['num_experts', 'num_local_experts'];

/** Families of which most layers have experts, by ModelConfig.architecture; state-families.ts has those that keep states too. */
export const EXPERT_FAMILIES: Readonly<Record<string, DecoderFamily>> = {
  qwen3moe: {
    experts: {
      count: COUNT,
      usualCount: 128,
      usualUsed: 8,
      width: 'moe_intermediate_size',
      usualWidth: 768,
      normalize: { usually: false },
      dense: 'bySteps',
    },
    read: qwen,
  },
  mixtral: {
    epsilon: ['rms_norm_eps', 1e-5],
    experts: {
      count: ['num_local_experts', 'num_experts'],
      usualCount: 8,
      usualUsed: 2,
      width: 'intermediate_size',
      normalize: 'always',
    },
    read: (config, { headDim, maxPositions }) => ({
      slidingWindow: windowOfAllLayers(config, slidingWindow(config, null)),
      rope: ropeOfHuggingFace(config, headDim, maxPositions, { theta: 1_000_000 }),
    }),
  },
  qwen2moe: {
    experts: {
      count: COUNT,
      usualCount: 60,
      usualUsed: 4,
      width: 'moe_intermediate_size',
      usualWidth: 1408,
      normalize: { usually: false },
      shared: { width: 'shared_expert_intermediate_size', usually: 5632 },
      dense: 'bySteps',
    },
    read: qwen2,
  },
  olmoe: {
    epsilon: ['rms_norm_eps', 1e-5],
    experts: {
      count: COUNT,
      usualCount: 64,
      usualUsed: 8,
      width: 'intermediate_size',
      usualWidth: 2048,
      normalize: { usually: false },
    },
    read: olmoe,
  },
  gptoss: {
    headDim: 64,
    epsilon: ['rms_norm_eps', 1e-5],
    experts: {
      count: COUNT,
      usualCount: 128,
      usualUsed: 4,
      width: 'intermediate_size',
      usualWidth: 2880,
      normalize: 'always',
      biased: true,
      clamped: GPT_OSS_CLAMP,
      stacked: true,
    },
    read: gptOss,
  },
  phimoe: {
    epsilon: ['rms_norm_eps', 1e-5],
    experts: {
      count: ['num_local_experts', 'num_experts'],
      usualCount: 16,
      usualUsed: 2,
      width: 'intermediate_size',
      usualWidth: 6400,
      normalize: 'never',
      sparseJitter: 0.01,
    },
    read: phiMoe,
  },
  glm4moe: {
    epsilon: ['rms_norm_eps', 1e-5],
    experts: {
      count: ['n_routed_experts', 'num_local_experts'],
      usualCount: 128,
      usualUsed: 8,
      width: 'moe_intermediate_size',
      usualWidth: 1408,
      normalize: { usually: true },
      shared: { experts: 'n_shared_experts', usually: 1 },
      dense: { first: 'first_k_dense_replace', usually: 1 },
      scoring: 'sigmoid',
      choiceBias: true,
      groups: { top: 2 },
      hasFactor: true,
      sumEpsilon: 1e-20,
    },
    read: glm4,
  },
};

/**
 * RoPE, or longrope whose factor on cos and sin has fields of its own: short_mscale, and long_mscale beyond the original length. They are
 * the same in published models.
 */
function phiMoeRope(config: ConfigFields, { headDim, maxPositions }: KnownDimensions): RopeConfig {
  const rope = ropeOfHuggingFace(config, headDim, maxPositions, { theta: 1_000_000 });
  const { scaling } = rope;
  if (scaling.type === 'none') return rope;
  if (scaling.type !== 'longrope') {
    const key = config.raw('rope_parameters') === undefined ? 'rope_scaling' : 'rope_parameters';
    throw config.error(key, 'absent or of the type longrope or su');
  }
  const fields = new ConfigFields(`${config.where}: rope scaling`, givenRope(config) as JsonObject);
  const attentionFactor = fields.positive('short_mscale');
  if (fields.positive('long_mscale') !== attentionFactor)
    throw fields.error('long_mscale', `short_mscale, which is ${attentionFactor}`);
  return { ...rope, scaling: { ...scaling, attentionFactor } };
}
