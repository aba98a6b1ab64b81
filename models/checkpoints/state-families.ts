import type { ModelConfig } from '../model-config.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import type { DecoderFamily, KnownDimensions } from './decoder-family.js';
import type { ExpertFields } from './experts-config.js';
import { ropeOfHuggingFace } from './rope-config.js';

/** Most inputs of a convolution, as executors take them. */
export const MAX_TAPS = 64;

const QWEN35: DecoderFamily = {
  headDim: 256,
  read: (config, dimensions) => {
    const { headDim, maxPositions } = dimensions;
    const interval = config.integer('full_attention_interval', 1, LIMITS.layers, 4);
    const attends = (layer: number) => (layer + 1) % interval === 0;
    return {
      slidingWindow: null,
      attentionBias: refused(config, 'attention_bias'),
      attendingLayers: attending(config, dimensions, 'linear_attention', attends),
      shortConv: { taps: config.integer('linear_conv_kernel_dim', 2, MAX_TAPS, 4), biased: false },
      delta: deltaHeads(config),
      rope: ropeOfHuggingFace(config, headDim, maxPositions, { partial: 0.25 }),
    };
  },
};

const LFM2: DecoderFamily = {
  tied: true,
  epsilon: ['norm_eps', 1e-5],
  read: (config, dimensions) => {
    const { headDim, maxPositions } = dimensions;
    return {
      slidingWindow: null,
      activation: 'silu',
      tieWordEmbeddings: config.boolean('tie_embedding', config.boolean('tie_word_embeddings', true)),
      attendingLayers: attending(config, dimensions, 'conv', attendsByIndex(config, dimensions)),
      shortConv: {
        taps: config.integer('conv_L_cache', 2, MAX_TAPS, 3),
        biased: config.boolean('conv_bias', false),
      },
      rope: ropeOfHuggingFace(config, headDim, maxPositions, { theta: 1_000_000 }),
    };
  },
};

/** Qwen3.5 with a mixture of experts in each layer, together with one that all tokens go to. */
const mixture = (
  experts: Pick<ExpertFields, 'usualCount' | 'usualUsed' | 'normalize' | 'dense'>,
): DecoderFamily => ({
  ...QWEN35,
  experts: {
    ...experts,
    count: ['num_experts', 'num_local_experts'],
    width: 'moe_intermediate_size',
    usualWidth: 512,
    shared: { width: 'shared_expert_intermediate_size', usually: 512 },
  },
});

/** Families of which some layers keep a state of the sequence in place of attending, by ModelConfig.architecture. */
export const STATE_FAMILIES: Readonly<Record<string, DecoderFamily>> = {
  lfm2: {
    ...LFM2,
    read: (config, dimensions) => ({ ...LFM2.read(config, dimensions), intermediateSize: lfm2Width(config) }),
  },
  lfm2moe: {
    ...LFM2,
    experts: {
      count: ['num_experts', 'num_local_experts'],
      usualCount: 32,
      usualUsed: 4,
      width: 'moe_intermediate_size',
      usualWidth: 1792,
      normalize: { usually: true },
      dense: { first: 'num_dense_layers', usually: 2 },
      scoring: 'sigmoid',
      choiceBias: 'use_expert_bias',
      hasFactor: true,
      sumEpsilon: 1e-6,
    },
  },
  qwen35: QWEN35,
  qwen35moe: mixture({ usualCount: 256, usualUsed: 8, normalize: 'always' }),
  qwen3next: mixture({ usualCount: 512, usualUsed: 10, normalize: { usually: true }, dense: 'bySteps' }),
};

/** Whether each layer attends, by layer_types, or without them by `attends`. At least one layer has to. */
function attending(
  config: ConfigFields,
  { numLayers }: KnownDimensions,
  other: string,
  attends: (layer: number) => boolean,
): boolean[] {
  const types = config.raw('layer_types');
  const known = ['full_attention', other];
  if (
    types !== undefined &&
    !(Array.isArray(types) && types.length === numLayers && types.every((type) => known.includes(type)))
  )
    throw config.error('layer_types', `${numLayers} times one of ${known.join(', ')}`);
  const layers = Array.isArray(types)
    ? types.map((type) => type === 'full_attention')
    : Array.from({ length: numLayers }, (_, layer) => attends(layer));
  if (!layers.includes(true)) throw config.error('layer_types', 'at least one layer that attends');
  return layers;
}

/** LFM2's first configurations have full_attn_idxs, the numbers of the layers that attend; without them all do. */
function attendsByIndex(config: ConfigFields, { numLayers }: KnownDimensions): (layer: number) => boolean {
  const given = config.raw('full_attn_idxs');
  if (given === undefined) return () => true;
  const isLayer = (index: unknown) =>
    Number.isInteger(index) && (index as number) >= 0 && (index as number) < numLayers;
  if (!Array.isArray(given) || !given.every(isLayer))
    throw config.error('full_attn_idxs', `a list of layers from 0 to ${numLayers - 1}`);
  return (layer) => given.includes(layer);
}

/** Width of LFM2's MLPs, which the field names only before it is adjusted. */
function lfm2Width(config: ConfigFields): number {
  const field = config.raw('block_ff_dim') === undefined ? 'intermediate_size' : 'block_ff_dim';
  const given = config.integer(field, 1, LIMITS.width);
  if (!config.boolean('block_auto_adjust_ff_dim', true)) return given;
  const multiplier = config.positive('block_ffn_dim_multiplier', 1);
  const multiple = config.integer('block_multiple_of', 1, LIMITS.width, 256);
  const width = multiple * Math.ceil(Math.floor(multiplier * Math.floor((2 * given) / 3)) / multiple);
  if (width > LIMITS.width)
    throw config.error(field, `a width that is at most ${LIMITS.width} once it is adjusted`);
  return width;
}

function deltaHeads(config: ConfigFields): NonNullable<ModelConfig['delta']> {
  const keyHeads = config.integer('linear_num_key_heads', 1, LIMITS.heads, 16);
  const valueHeads = config.integer('linear_num_value_heads', 1, LIMITS.heads, 32);
  if (valueHeads % keyHeads !== 0)
    throw config.error('linear_num_value_heads', `a multiple of the ${keyHeads} heads of keys`);
  return {
    keyHeads,
    valueHeads,
    keyDim: config.integer('linear_key_head_dim', 1, MAX_DELTA_DIM, 128),
    valueDim: config.integer('linear_value_head_dim', 1, MAX_DELTA_DIM, 128),
  };
}

/** Widest head of a delta rule that executors take. */
export const MAX_DELTA_DIM = 1024;

function refused(config: ConfigFields, field: string): false {
  if (config.boolean(field, false))
    throw config.error(field, 'false: biases of queries with gates are not supported');
  return false;
}
