import { LIMITS } from '../checkpoints/config-fields.js';
import { squareSide } from '../checkpoints/square-side.js';
import type { TowerConfig } from './tower-config.js';
import { activationOf, type Configs, chosenLayers, heads, MAX_SIDE } from './tower-fields.js';

/** InternVL in transformers' format. */
export function internVl({ model, outer, vision, textWidth }: Configs): TowerConfig {
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
  // The last of the tower's rows are those behind its last norm, others are those of a layer.
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
