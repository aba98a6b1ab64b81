import { ConfigFields, LIMITS } from '../checkpoints/config-fields.js';
import { isObject } from '../checkpoints/file-reading.js';
import type { TowerConfig } from './tower-config.js';
import {
  activationOf,
  type Configs,
  chosenLayers,
  ofOneSize,
  ropeTheta,
  type Usual,
} from './tower-fields.js';

export const PIXTRAL: Usual = {
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
export function ofPixtral(
  vision: ConfigFields,
  { hiddenSize, numHeads }: Pick<TowerConfig, 'hiddenSize' | 'numHeads'>,
) {
  const headDim = hiddenSize / numHeads;
  if (vision.integer('head_dim', 1, LIMITS.heads, headDim) !== headDim)
    throw vision.error('head_dim', `${headDim}, a share of hidden_size`);
  return { kind: 'pixtral', epsilon: 1e-5, anyGrid: true, ropeTheta: ropeTheta(vision) } as const;
}

/** Mistral Small 3.1 and later: Pixtral's tower, whose patches are merged by squares. */
export function mistral3(configs: Configs): TowerConfig {
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
