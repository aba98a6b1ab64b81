import { ConfigFields, LIMITS } from '../checkpoints/config-fields.js';
import { isObject } from '../checkpoints/file-reading.js';
import type { TowerConfig } from './tower-config.js';
import { activationOf, type Configs, heads, MAX_SIDE, ropeTheta } from './tower-fields.js';

/** Gemma 4's tower; sizes that transformers has by default are those of its small models. */
export function gemma4({ model, outer, vision, textWidth }: Configs): TowerConfig {
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
