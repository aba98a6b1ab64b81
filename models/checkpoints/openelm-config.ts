import type { LayerShape, ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import { ACTIVATIONS, checkHeads, specialTokens } from './config-values.js';
import type { NamedTensor } from './tensor-layout.js';

const RMS_NORM_EPSILON = 1e-6;

/** Names of OpenELM's tensors, and those that they have here: the names of most decoders. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^transformer\.token_embeddings\./, 'model.embed_tokens.'],
  [/^transformer\./, 'model.'],
  [/\.attn_norm\./, '.input_layernorm.'],
  [/\.ffn_norm\./, '.post_attention_layernorm.'],
  [/\.attn\.out_proj\./, '.self_attn.o_proj.'],
  [/\.attn\./, '.self_attn.'],
  [/\.ffn\.proj_1\./, '.mlp.gate_up_proj.'],
  [/\.ffn\.proj_2\./, '.mlp.down_proj.'],
];

/** Makes the ModelConfig of OpenELM, whose fields have names of their own. */
export function configOfOpenElm(config: ConfigFields, generation: ConfigFields | null): ModelConfig {
  const vocabSize = config.integer('vocab_size', 1, LIMITS.vocabSize);
  const hiddenSize = config.integer('model_dim', 1, LIMITS.width);
  const numLayers = config.integer('num_transformer_layers', 1, LIMITS.layers);
  const headDim = config.integer('head_dim', 2, LIMITS.heads);
  const heads = config.integers('num_query_heads', numLayers, LIMITS.heads);
  const kvHeads = config.integers('num_kv_heads', numLayers, LIMITS.heads);
  const widths = widthsOf(config, numLayers, hiddenSize);
  for (const [layer, count] of heads.entries()) checkHeads(config.where, count, kvHeads[layer]!, headDim);
  for (const name of ['ffn_with_glu', 'normalize_qk_projections'])
    if (!config.boolean(name, true)) throw config.error(name, 'true');
  const norm = config.raw('normalization_layer_name') ?? 'rms_norm';
  if (norm !== 'rms_norm') throw config.error('normalization_layer_name', 'rms_norm');
  const activation = ACTIVATIONS.get(config.raw('activation_fn_name') ?? 'swish');
  if (!activation) throw config.error('activation_fn_name', `one of ${[...ACTIVATIONS.keys()].join(', ')}`);

  const layerShapes = heads.map((numHeads, layer): LayerShape => {
    return { numHeads, numKvHeads: kvHeads[layer]!, headDim, intermediateSize: widths[layer]! };
  });
  return {
    architecture: 'openelm',
    vocabSize,
    hiddenSize,
    numLayers,
    ...dimensionsOfLayers(layerShapes),
    rmsNormEpsilon: RMS_NORM_EPSILON,
    activation,
    attentionBias: false,
    mlpBias: false,
    tieWordEmbeddings: config.boolean('share_input_output_layers', true),
    maxPositions: config.integer('max_context_length', 1, LIMITS.positions, 2048),
    slidingWindow: null,
    rope: {
      theta: config.positive('rope_freq_constant', 10_000),
      rotaryDim: headDim,
      scaling: { type: 'none' },
    },
    ...specialTokens(config, generation, vocabSize),
  };
}

/** The greatest of each dimension, and all where they differ. */
export function dimensionsOfLayers(layerShapes: LayerShape[]): LayerShape & Pick<ModelConfig, 'layerShapes'> {
  const most = (field: keyof LayerShape) => Math.max(...layerShapes.map((shape) => shape[field]));
  return {
    numHeads: most('numHeads'),
    numKvHeads: most('numKvHeads'),
    headDim: most('headDim'),
    intermediateSize: most('intermediateSize'),
    layerShapes,
  };
}

/** Widths of the MLPs: a multiple of the model's, rounded to a divisor. */
function widthsOf(config: ConfigFields, numLayers: number, hiddenSize: number): number[] {
  const divisor = config.integer('ffn_dim_divisor', 1, LIMITS.width, 256);
  return config.positives('ffn_multipliers', numLayers).map((multiplier) => {
    const width = divisible(multiplier * hiddenSize, divisor);
    if (width > LIMITS.width) throw config.error('ffn_multipliers', `multiples of at most ${LIMITS.width}`);
    return width;
  });
}

/** The nearest multiple of a divisor that is at least one divisor, and at most a tenth less than the value. */
function divisible(value: number, divisor: number): number {
  const nearest = Math.max(divisor, Math.floor(Math.trunc(value + divisor / 2) / divisor) * divisor);
  return nearest < 0.9 * value ? nearest + divisor : nearest;
}

/** A tensor of OpenELM under the network's names: the way up stacks gate over up. */
export function openElmTensors(name: string, tensor: NamedTensor): [string, NamedTensor][] {
  const own = NAMES.reduce((known, [from, to]) => known.replace(from, to), name);
  const [rows, columns] = tensor.shape;
  const isStack = own.includes('.gate_up_proj.') && tensor.shape.length === 2 && rows! % 2 === 0;
  if (!isStack || tensor.byteLength === null) return [[own, tensor]];
  if (tensor.quantized !== undefined)
    throw new CheckpointError(
      `${tensor.file}: tensor ${tensor.name} is quantised, which is not supported for OpenELM.`,
    );
  const half = { shape: [rows! / 2, columns!], byteLength: tensor.byteLength / 2 };
  return ['gate_proj', 'up_proj'].map((part, i) => [
    own.replace('gate_up_proj', part),
    { ...tensor, ...half, offset: tensor.offset + i * half.byteLength },
  ]);
}
