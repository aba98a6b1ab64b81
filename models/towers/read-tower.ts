import type { Activation } from '../../network/plan.js';
import { CheckpointError } from '../checkpoints/checkpoint.js';
import { ConfigFields, LIMITS } from '../checkpoints/config-fields.js';
import { isObject, type JsonObject } from '../checkpoints/file-reading.js';
import type { TowerConfig } from './tower-config.js';

/** Activations by the names that configs have for them. */
const ACTIVATIONS = new Map<unknown, Activation>([
  ['gelu', 'gelu'],
  ['gelu_new', 'geluTanh'],
  ['gelu_pytorch_tanh', 'geluTanh'],
  ['quick_gelu', 'quickGelu'],
  ['silu', 'silu'],
  ['relu', 'relu'],
]);

/** Sides of pictures and patches in pixels, and patches of a side. */
const MAX_SIDE = 2 ** 14;

/** A config.json: its own fields, and those of the tower. */
interface Configs {
  model: string;
  outer: ConfigFields;
  vision: ConfigFields;
  /** Width of the text model. */
  textWidth: number;
}

/** By the name in "architectures". */
const READERS = new Map<string, (configs: Configs) => TowerConfig>([
  ['SmolVLMForConditionalGeneration', smolVlm],
  ['Idefics3ForConditionalGeneration', smolVlm],
  ['Gemma3ForConditionalGeneration', gemma3],
  ['LlavaForConditionalGeneration', llava],
  ['Qwen3VLForConditionalGeneration', qwen],
  ['Qwen3VLMoeForConditionalGeneration', qwen],
  ['Qwen3_5ForConditionalGeneration', qwen],
  ['Qwen3_5MoeForConditionalGeneration', qwen],
]);

/** Models whose pictures are seen, by their names in "architectures". */
export const seeingModels: readonly string[] = [...READERS.keys()];

/**
 * The tower of a model, and what leads from it to the text model, of which the width is known.
 *
 * @param model its name in "architectures", see unwrapConfig
 * @throws CheckpointError for a tower that is not supported
 */
export function readTower(where: string, model: string, fields: JsonObject, textWidth: number): TowerConfig {
  const read = READERS.get(model);
  if (read === undefined) throw unseen(where, model);
  const vision = fields.vision_config;
  if (!isObject(vision)) throw new CheckpointError(`${where}: vision_config should be an object.`);
  const ofVision = new ConfigFields(`${where}: vision_config`, vision);
  return read({ model, outer: new ConfigFields(where, fields), vision: ofVision, textWidth });
}

const unseen = (where: string, what: string) =>
  new CheckpointError(
    `${where}: pictures of ${what} are not supported; those of ${seeingModels.join(', ')} are.`,
  );

/** Defaults of a config class of transformers. */
interface Usual {
  hiddenSize: number;
  intermediateSize: number;
  numLayers: number;
  numHeads: number;
  image: number;
  patch: number;
  activation: string;
  epsilon: number;
}

const SMOLVLM: Usual = {
  hiddenSize: 1152,
  intermediateSize: 3072,
  numLayers: 12,
  numHeads: 16,
  image: 224,
  patch: 32,
  activation: 'gelu_pytorch_tanh',
  epsilon: 1e-6,
};
const SIGLIP: Usual = { ...SMOLVLM, hiddenSize: 768, numHeads: 12, patch: 16 };
const CLIP: Usual = {
  hiddenSize: 1024,
  intermediateSize: 4096,
  numLayers: 24,
  numHeads: 16,
  image: 336,
  patch: 14,
  activation: 'quick_gelu',
  epsilon: 1e-5,
};

const PIXTRAL: Usual = { ...CLIP, image: 1024, patch: 16, activation: 'gelu' };

/** Fields of towers that see pictures of one size, with learned positions. */
function ofOneSize({ model, vision, textWidth }: Configs, usual: Usual) {
  const channels = vision.integer('num_channels', 1, 16, 3);
  const patch = vision.integer('patch_size', 1, MAX_SIDE, usual.patch);
  const image = vision.integer('image_size', patch, MAX_SIDE, usual.image);
  return {
    model,
    ...heads(vision, 'num_attention_heads', usual),
    intermediateSize: vision.integer('intermediate_size', 1, LIMITS.width, usual.intermediateSize),
    numLayers: vision.integer('num_hidden_layers', 1, LIMITS.layers, usual.numLayers),
    activation: activationOf(vision, 'hidden_act', usual.activation),
    epsilon: vision.positive('layer_norm_eps', usual.epsilon),
    patchWidth: channels * patch ** 2,
    merge: 1,
    inSquares: false,
    positionSide: Math.floor(image / patch),
    anyGrid: false,
    textWidth,
  };
}

function heads(vision: ConfigFields, key: string, usual: Pick<Usual, 'hiddenSize' | 'numHeads'>) {
  const hiddenSize = vision.integer('hidden_size', 1, LIMITS.width, usual.hiddenSize);
  const numHeads = vision.integer(key, 1, LIMITS.heads, usual.numHeads);
  if (hiddenSize % (4 * numHeads) === 0) return { hiddenSize, numHeads };
  throw vision.error('hidden_size', `a multiple of four times the ${numHeads} attention heads`);
}

function activationOf(config: ConfigFields, key: string, usual: string): Activation {
  const activation = ACTIVATIONS.get(config.raw(key) ?? usual);
  if (activation === undefined) throw config.error(key, `one of ${[...ACTIVATIONS.keys()].join(', ')}`);
  return activation;
}

function smolVlm(configs: Configs): TowerConfig {
  const tower = ofOneSize(configs, SMOLVLM);
  const merge = configs.outer.integer('scale_factor', 1, tower.positionSide, 2);
  return { ...tower, kind: 'siglip', connector: { kind: 'shuffle' }, merge, anyGrid: true };
}

function gemma3(configs: Configs): TowerConfig {
  const tower = ofOneSize(configs, SIGLIP);
  const { outer } = configs;
  const side = Math.sqrt(outer.integer('mm_tokens_per_image', 1, tower.positionSide ** 2, 256));
  const merge = tower.positionSide / side;
  if (!Number.isInteger(side) || !Number.isInteger(merge))
    throw outer.error('mm_tokens_per_image', `a square whose side divides ${tower.positionSide}`);
  return { ...tower, kind: 'siglip', connector: { kind: 'pool' }, merge };
}

function llava(configs: Configs): TowerConfig {
  const { outer, vision } = configs;
  const type = vision.raw('model_type') ?? 'clip_vision_model';
  if (type !== 'clip_vision_model' && type !== 'pixtral')
    throw unseen(vision.where, `a LLaVA with a tower of model_type ${JSON.stringify(type).slice(0, 100)}`);
  const isClip = type === 'clip_vision_model';
  const tower = ofOneSize(configs, isClip ? CLIP : PIXTRAL);
  // CLIP's own row stays behind; Pixtral has none.
  const strategy = isClip ? 'default' : 'full';
  if ((outer.raw('vision_feature_select_strategy') ?? 'default') !== strategy)
    throw outer.error('vision_feature_select_strategy', `"${strategy}"`);
  const { numLayers: all } = tower;
  const layer = outer.integer('vision_feature_layer', -all - 1, all, -2);
  const biased = outer.boolean('multimodal_projector_bias', true);
  const activation = activationOf(outer, 'projector_hidden_act', 'gelu');
  return {
    ...tower,
    ...(isClip ? { kind: 'clip' } : ofPixtral(vision, tower)),
    connector: { kind: 'layers', activation, biased },
    numLayers: layer < 0 ? all + 1 + layer : layer,
  };
}

/** Pixtral sees pictures of any size, by RoPE alone. */
function ofPixtral(
  vision: ConfigFields,
  { hiddenSize, numHeads }: Pick<TowerConfig, 'hiddenSize' | 'numHeads'>,
) {
  const headDim = hiddenSize / numHeads;
  if (vision.integer('head_dim', 1, LIMITS.heads, headDim) !== headDim)
    throw vision.error('head_dim', `${headDim}, a share of hidden_size`);
  return { kind: 'pixtral', epsilon: 1e-5, anyGrid: true, ropeTheta: ropeTheta(vision) } as const;
}

function qwen({ model, vision, textWidth }: Configs): TowerConfig {
  const channels = vision.integer('in_channels', 1, 16, 3);
  const patch = vision.integer('patch_size', 1, MAX_SIDE, 16);
  const frames = vision.integer('temporal_patch_size', 1, 16, 2);
  const width = vision.integer('out_hidden_size', 1, LIMITS.width, 3584);
  if (width !== textWidth) throw vision.error('out_hidden_size', `${textWidth}, the width of the text model`);
  const numLayers = vision.integer('depth', 1, LIMITS.layers, 27);
  const positions = vision.integer('num_position_embeddings', 1, LIMITS.positions, 2304);
  return {
    model,
    kind: 'qwen',
    connector: { kind: 'merger', levels: model.startsWith('Qwen3VL') ? levelsOf(vision, numLayers) : [] },
    ...heads(vision, 'num_heads', { hiddenSize: 1152, numHeads: 16 }),
    intermediateSize: vision.integer('intermediate_size', 1, LIMITS.width, 4304),
    numLayers,
    activation: activationOf(vision, 'hidden_act', 'gelu_pytorch_tanh'),
    epsilon: 1e-6,
    patchWidth: channels * frames * patch ** 2,
    merge: vision.integer('spatial_merge_size', 1, 16, 2),
    inSquares: true,
    positionSide: Math.floor(Math.sqrt(positions)),
    anyGrid: true,
    ropeTheta: ropeTheta(vision),
    textWidth,
  };
}

/** Layers whose rows go to the text model too, ascending. */
function levelsOf(vision: ConfigFields, numLayers: number): number[] {
  const levels = vision.raw('deepstack_visual_indexes') ?? [8, 16, 24];
  const isRight =
    Array.isArray(levels) &&
    levels.every((level, i) => Number.isInteger(level) && level > (levels[i - 1] ?? -1) && level < numLayers);
  if (!isRight)
    throw vision.error('deepstack_visual_indexes', `ascending numbers of the ${numLayers} layers`);
  return levels;
}

function ropeTheta(vision: ConfigFields): number {
  const rope = vision.raw('rope_parameters');
  if (rope === undefined) return 10_000;
  if (!isObject(rope)) throw vision.error('rope_parameters', 'an object');
  return new ConfigFields(`${vision.where}: rope_parameters`, rope).positive('rope_theta', 10_000);
}
