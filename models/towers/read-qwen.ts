import { type ConfigFields, LIMITS } from '../checkpoints/config-fields.js';
import type { TowerConfig, TowerWindows } from './tower-config.js';
import { activationOf, type Configs, heads, layersOf, MAX_SIDE, ropeTheta } from './tower-fields.js';

export function qwen({ model, vision, textWidth }: Configs): TowerConfig {
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
    connector: {
      kind: 'merger',
      levels: model.startsWith('Qwen3VL')
        ? layersOf(vision, 'deepstack_visual_indexes', [8, 16, 24], numLayers)
        : [],
    },
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

/** Fields that the towers of Qwen2-VL and Qwen2.5-VL have in common. */
function ofQwen2(vision: ConfigFields) {
  const channels = vision.integer('in_channels', 1, 16, 3);
  const patch = vision.integer('patch_size', 1, MAX_SIDE, 14);
  const frames = vision.integer('temporal_patch_size', 1, 16, 2);
  return {
    patch,
    shared: {
      connector: { kind: 'merger', levels: [] },
      numLayers: vision.integer('depth', 1, LIMITS.layers, 32),
      epsilon: 1e-6,
      patchWidth: channels * frames * patch ** 2,
      merge: vision.integer('spatial_merge_size', 1, 16, 2),
      inSquares: true,
      positionSide: 0,
      anyGrid: true,
      ropeTheta: ropeTheta(vision),
    },
  } as const;
}

/** Qwen2-VL: its hidden_size is the width of the text model. */
export function qwen2({ model, vision, textWidth }: Configs): TowerConfig {
  const width = vision.integer('hidden_size', 1, LIMITS.width, 3584);
  if (width !== textWidth) throw vision.error('hidden_size', `${textWidth}, the width of the text model`);
  const own = heads(vision, 'num_heads', { hiddenSize: 1280, numHeads: 16 }, 'embed_dim');
  const inner = vision.positive('mlp_ratio', 4) * own.hiddenSize;
  if (!Number.isInteger(inner) || inner > LIMITS.width)
    throw vision.error('mlp_ratio', `a number that gives a whole width, up to ${LIMITS.width}`);
  return {
    model,
    kind: 'qwen2',
    ...ofQwen2(vision).shared,
    ...own,
    intermediateSize: inner,
    activation: activationOf(vision, 'hidden_act', 'quick_gelu'),
    textWidth,
  };
}

export function qwen2dot5({ model, vision, textWidth }: Configs): TowerConfig {
  const width = vision.integer('out_hidden_size', 1, LIMITS.width, 3584);
  if (width !== textWidth) throw vision.error('out_hidden_size', `${textWidth}, the width of the text model`);
  const { patch, shared } = ofQwen2(vision);
  return {
    model,
    kind: 'qwen2.5',
    ...shared,
    ...heads(vision, 'num_heads', { hiddenSize: 3584, numHeads: 16 }),
    intermediateSize: vision.integer('intermediate_size', 1, LIMITS.width, 3420),
    activation: activationOf(vision, 'hidden_act', 'silu'),
    textWidth,
    windows: windowsOf(vision, patch * shared.merge, shared.numLayers),
  };
}

/** @param square pixels of a square's side */
function windowsOf(vision: ConfigFields, square: number, numLayers: number): TowerWindows {
  const pixels = vision.integer('window_size', 1, MAX_SIDE, 112);
  if (pixels % square !== 0)
    throw vision.error('window_size', `a multiple of the ${square} pixels of a square of patches`);
  return {
    side: pixels / square,
    wholeLayers: layersOf(vision, 'fullatt_block_indexes', [7, 15, 23, 31], numLayers),
  };
}
