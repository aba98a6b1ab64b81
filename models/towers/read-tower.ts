import { CheckpointError } from '../checkpoints/checkpoint.js';
import { ConfigFields, LIMITS } from '../checkpoints/config-fields.js';
import { isObject, type JsonObject } from '../checkpoints/file-reading.js';
import { gemma4 } from './read-gemma4.js';
import { internVl } from './read-internvl.js';
import { mistral3, ofPixtral, PIXTRAL } from './read-pixtral.js';
import { qwen, qwen2, qwen2dot5 } from './read-qwen.js';
import type { TowerConfig } from './tower-config.js';
import { activationOf, type Configs, chosenLayers, ofOneSize, type Usual } from './tower-fields.js';

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
export const seeingModels: readonly string[] = [...READERS.keys()];

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
  // CLIP's own row stays behind; Pixtral has none.
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
