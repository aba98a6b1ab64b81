import type { GgufKeys } from '../../checkpoints/gguf-keys.js';
import {
  activation,
  colours,
  type ShapeOf,
  shortest,
  sizes,
  type ToldByProjector,
  visionConfig,
} from './projector-fields.js';

export function gemma3(keys: GgufKeys): ToldByProjector {
  const vision = visionConfig(keys);
  const side = vision.image_size as number;
  const merge = keys.integer('vision.projector.scale_factor', 1, 64, 4);
  return {
    config: {
      model_type: 'gemma3',
      mm_tokens_per_image: Math.floor(side / (vision.patch_size as number) / merge) ** 2,
      vision_config: { ...vision, hidden_act: activation(keys, 'gelu_pytorch_tanh') },
    },
    imageProcessor: {
      image_processor_type: 'Gemma3ImageProcessor',
      size: { height: side, width: side },
      ...colours(keys),
    },
  };
}

/** Texts around a picture, which the vocabulary has and the tower's file does not name. */
const AROUND_GEMMA4 = { boi_token: '<|image>', eoi_token: '<image|>' };
/** Most tokens of a picture, as the model's makers have it. */
const TOKENS_OF_GEMMA4 = 280;

/** Gemma 4, whose pictures are not normed: means and deviations of the file are of no bearing. */
export function gemma4(keys: GgufKeys, shapeOf: ShapeOf): ToldByProjector {
  const { patch, hidden, inner, layers, heads } = sizes(keys);
  const pool = keys.integer('vision.projector.scale_factor', 1, 16, 3);
  const [, places = 0] = shapeOf('v.position_embd.weight') ?? [];
  const vision = {
    hidden_size: hidden,
    intermediate_size: inner,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: heads,
    head_dim: hidden / heads,
    patch_size: patch,
    pooling_kernel_size: pool,
    position_embedding_size: places,
    hidden_activation: 'gelu_pytorch_tanh',
    rms_norm_eps: shortest(keys.positive('vision.attention.layer_norm_epsilon')),
    use_clipped_linears: shapeOf('v.blk.0.attn_q.input_max') !== undefined,
    standardize: shapeOf('v.std_bias') !== undefined,
  };
  return {
    config: { model_type: 'gemma4', vision_config: vision },
    imageProcessor: {
      image_processor_type: 'Gemma4ImageProcessor',
      patch_size: patch,
      pooling_kernel_size: pool,
      max_soft_tokens: TOKENS_OF_GEMMA4,
    },
    tokenizer: AROUND_GEMMA4,
  };
}
