import { CheckpointError } from '../checkpoints/checkpoint.js';
import { ConfigFields, LIMITS } from '../checkpoints/config-fields.js';
import { isObject, type JsonObject } from '../checkpoints/file-reading.js';
import { squareSide } from '../checkpoints/square-side.js';
import { qwen, qwen2, qwen2dot5 } from './read-qwen.js';
import type { TowerConfig } from './tower-config.js';
import {
  activationOf,
  type Configs,
  chosenLayers,
  heads,
  MAX_SIDE,
  ofOneSize,
  ropeTheta,
  type Usual,
} from './tower-fields.js';

/** By the name in "architectures". */
const READERS = new Map<string, (configs: Configs) => TowerConfig>([
  ['SmolVLMForConditionalGeneration', smolVlm],
  ['Idefics3ForConditionalGeneration', smolVlm],
  ['Gemma3ForConditionalGeneration', gemma3],
  ['Gemma4ForConditionalGeneration', gemma4],
  ['LlavaForConditionalGeneration', llava],
  ['InternVLForConditionalGeneration', internVl],
  ['Mistral3ForConditionalGeneration', mistral3],
  ['Qwen2VLForConditionalGeneration', qwen2],
  ['Qwen2_5_VLForConditionalGeneration', qwen2dot5],
  ['Qwen3VLForConditionalGeneration', qwen],
  ['Qwen3VLMoeForConditionalGeneration', qwen],
  ['Qwen3_5ForConditionalGeneration', qwen],
  ['Qwen3_5MoeForConditionalGeneration', qwen],
  ['CLIPModel', clipAlone],
  ['SiglipModel', siglipAlone],
]);

/** Models of two towers, one that sees and one that reads texts. */
const TWO_TOWERS: ReadonlySet<unknown> = new Set(['CLIPModel', 'SiglipModel']);

/** The name of a model of two towers in "architectures"; null: it is none. */
export function twoTowerModel({ architectures }: JsonObject): string | null {
  const [name] = Array.isArray(architectures) ? architectures : [];
  return TWO_TOWERS.has(name) ? name : null;
}

/** Models whose pictures are seen, by their names in "architectures". */
const seeingModels: readonly string[] = [...READERS.keys()];

/**
 * The tower of a model, and what leads from it to the text model, of which the width is known.
 *
 * @param model its name in "architectures", see unwrapConfig
 * @throws CheckpointError for a tower that is not supported
 */
export function readTower(where: string, model: string, fields: JsonObject, textWidth: number): TowerConfig {
  const read = READERS.get(model);
  if (read === undefined) throw unseen(where, model, MISSING.get(model));
  const vision = fields.vision_config;
  if (!isObject(vision)) throw new CheckpointError(`${where}: vision_config should be an object.`);
  const ofVision = new ConfigFields(`${where}: vision_config`, vision);
  return read({ model, outer: new ConfigFields(where, fields), vision: ofVision, textWidth });
}

/** What models need whose texts are read, and whose pictures are not. */
const TILES =
  'the rows of its tiles are joined to one picture, cut to its ratio, with a learned row (image_newline) at the end of each line';
const MISSING = new Map([
  ['LlavaNextForConditionalGeneration', TILES],
  ['LlavaOnevisionForConditionalGeneration', TILES],
]);

const unseen = (where: string, what: string, why?: string) =>
  new CheckpointError(
    `${where}: pictures of ${what} are not supported${why === undefined ? '' : `, since ${why}`}; those of ${seeingModels.join(', ')} are.`,
  );

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

const CLIP_ALONE: Usual = {
  ...CLIP,
  hiddenSize: 768,
  intermediateSize: 3072,
  numLayers: 12,
  numHeads: 12,
  image: 224,
  patch: 32,
};

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

function clipAlone(configs: Configs): TowerConfig {
  const textWidth = configs.outer.integer('projection_dim', 1, LIMITS.width, 512);
  return { ...ofOneSize(configs, CLIP_ALONE), kind: 'clip', connector: { kind: 'class' }, textWidth };
}

function siglipAlone(configs: Configs): TowerConfig {
  const tower = ofOneSize(configs, SIGLIP);
  if (!configs.vision.boolean('vision_use_head', true)) throw configs.vision.error('vision_use_head', 'true');
  return { ...tower, kind: 'siglip', connector: { kind: 'probe' }, textWidth: tower.hiddenSize };
}

function llava(configs: Configs): TowerConfig {
  const { outer, vision } = configs;
  const type = vision.raw('model_type') ?? 'clip_vision_model';
  if (type !== 'clip_vision_model' && type !== 'pixtral')
    throw unseen(vision.where, `a LLaVA with a tower of model_type ${JSON.stringify(type).slice(0, 100)}`);
  const isClip = type === 'clip_vision_model';
  const tower = ofOneSize(configs, isClip ? CLIP : PIXTRAL);
  // CLIP's own row is left out; Pixtral has none.
  const strategy = isClip ? 'default' : 'full';
  if ((outer.raw('vision_feature_select_strategy') ?? 'default') !== strategy)
    throw outer.error('vision_feature_select_strategy', `"${strategy}"`);
  const biased = outer.boolean('multimodal_projector_bias', true);
  const activation = activationOf(outer, 'projector_hidden_act', 'gelu');
  return {
    ...tower,
    ...(isClip ? { kind: 'clip' } : ofPixtral(vision, tower)),
    connector: { kind: 'layers', activation, biased },
    numLayers: chosenLayers(outer, tower.numLayers, -2),
  };
}

/** Gemma 4's tower; sizes that transformers has by default are those of its small models. */
function gemma4({ model, outer, vision, textWidth }: Configs): TowerConfig {
  const { hiddenSize, numHeads } = heads(vision, 'num_attention_heads', { hiddenSize: 768, numHeads: 12 });
  const headDim = hiddenSize / numHeads;
  if (vision.integer('head_dim', 1, LIMITS.heads, 64) !== headDim)
    throw vision.error('head_dim', `${headDim}, a share of hidden_size`);
  if (vision.integer('num_key_value_heads', 1, LIMITS.heads, 12) !== numHeads)
    throw vision.error('num_key_value_heads', `the ${numHeads} attention heads`);
  refuseBiases(vision);
  refusePadding(outer);
  const patch = vision.integer('patch_size', 1, MAX_SIDE, 16);
  return {
    model,
    kind: 'gemma4',
    connector: { kind: 'pool', plain: true },
    ...{ hiddenSize, numHeads },
    intermediateSize: vision.integer('intermediate_size', 1, LIMITS.width, 3072),
    numLayers: vision.integer('num_hidden_layers', 1, LIMITS.layers, 16),
    activation: activationOf(vision, 'hidden_activation', 'gelu_pytorch_tanh'),
    epsilon: vision.positive('rms_norm_eps', 1e-6),
    patchWidth: 3 * patch ** 2,
    merge: vision.integer('pooling_kernel_size', 1, 16, 3),
    inSquares: false,
    positionSide: vision.integer('position_embedding_size', 1, LIMITS.positions, 10_240),
    anyGrid: true,
    ropeTheta: ropeTheta(vision, 100),
    textWidth,
    // The numbers are in the files.
    ...(vision.boolean('use_clipped_linears', false) && { clips: [] }),
    ...(vision.boolean('standardize', false) && { isStandardized: true as const }),
  };
}

function refuseBiases(vision: ConfigFields): void {
  if (vision.boolean('attention_bias', false)) throw vision.error('attention_bias', 'false');
}

/** The further input that layers of the small text models have of a picture is that of the token for padding. */
function refusePadding(outer: ConfigFields): void {
  const text = outer.raw('text_config');
  if (!isObject(text)) return;
  const own = new ConfigFields(`${outer.where}: text_config`, text);
  if (own.integer('hidden_size_per_layer_input', 0, LIMITS.width, 256) === 0) return;
  if ((own.tokenIds('pad_token_id')[0] ?? 0) !== 0) throw own.error('pad_token_id', '0');
}

/** InternVL in transformers' format. */
function internVl({ model, outer, vision, textWidth }: Configs): TowerConfig {
  const patch = squareSide(vision, 'patch_size', MAX_SIDE, 14);
  const image = squareSide(vision, 'image_size', MAX_SIDE, 448);
  const side = Math.floor(image / patch);
  const ratio = outer.positive('downsample_ratio', 0.5);
  const merge = Math.floor(1 / ratio);
  if (merge * ratio !== 1 || side % merge !== 0)
    throw outer.error('downsample_ratio', `1 over a whole number that divides the ${side} patches of a side`);
  if (!vision.boolean('use_absolute_position_embeddings', true))
    throw vision.error('use_absolute_position_embeddings', 'true');
  const norm = vision.raw('norm_type') ?? 'layer_norm';
  if (norm !== 'layer_norm' && norm !== 'rms_norm')
    throw vision.error('norm_type', '"layer_norm" or "rms_norm"');
  if ((outer.raw('vision_feature_select_strategy') ?? 'default') !== 'default')
    throw outer.error('vision_feature_select_strategy', '"default"');
  const all = vision.integer('num_hidden_layers', 1, LIMITS.layers, 24);
  // The last rows of the tower are those after its last norm, others are those of a layer.
  const isLast = (outer.raw('vision_feature_layer') ?? -1) === -1;
  return {
    model,
    kind: 'internvl',
    connector: { kind: 'normedLayers', activation: activationOf(outer, 'projector_hidden_act', 'gelu') },
    ...heads(vision, 'num_attention_heads', { hiddenSize: 1024, numHeads: 16 }),
    intermediateSize: vision.integer('intermediate_size', 1, LIMITS.width, 4096),
    numLayers: isLast ? all : chosenLayers(outer, all, -1),
    activation: activationOf(vision, 'hidden_act', 'gelu'),
    epsilon: vision.positive('layer_norm_eps', 1e-6),
    patchWidth: vision.integer('num_channels', 1, 16, 3) * patch ** 2,
    merge,
    inSquares: false,
    positionSide: side,
    anyGrid: false,
    textWidth,
    internVit: {
      biased: vision.boolean('attention_bias', false),
      headsNormed: vision.boolean('use_qk_norm', false),
      rms: norm === 'rms_norm',
      normsLast: isLast && !vision.boolean('use_mean_pooling', true),
    },
  };
}

const PIXTRAL: Usual = {
  hiddenSize: 1024,
  intermediateSize: 4096,
  numLayers: 24,
  numHeads: 16,
  image: 1024,
  patch: 16,
  activation: 'gelu',
  epsilon: 1e-5,
};

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

/** Mistral Small 3.1 and later: Pixtral's tower, whose patches are merged by squares. */
function mistral3(configs: Configs): TowerConfig {
  const { outer, vision } = configs;
  const type = vision.raw('model_type') ?? 'pixtral';
  if (type !== 'pixtral') throw vision.error('model_type', '"pixtral"');
  const tower = ofOneSize(configs, PIXTRAL);
  const text = outer.raw('text_config');
  const ofText = new ConfigFields(`${outer.where}: text_config`, isObject(text) ? text : {});
  return {
    ...tower,
    ...ofPixtral(vision, tower),
    merge: outer.integer('spatial_merge_size', 1, 16, 2),
    connector: {
      kind: 'mergedLayers',
      epsilon: ofText.positive('rms_norm_eps', 1e-5),
      activation: activationOf(outer, 'projector_hidden_act', 'gelu'),
      biased: outer.boolean('multimodal_projector_bias', false),
    },
    numLayers: chosenLayers(outer, tower.numLayers, -1),
  };
}
