import { LIMITS } from '../../checkpoints/config-fields.js';
import type { JsonObject } from '../../checkpoints/file-reading.js';
import type { GgufKeys } from '../../checkpoints/gguf-keys.js';
import { gemma3, gemma4 } from './gemma-projectors.js';
import {
  activation,
  colours,
  levelsOf,
  MAX_PIXELS,
  MAX_SIDE,
  type ShapeOf,
  sizes,
  type ToldByProjector,
  visionConfig,
} from './projector-fields.js';

/** What kinds of models a projector goes with, and how its file's keys are read. */
export interface Projector {
  /** Class of the model, or classes by the architectures of text models, where it goes with those alone. */
  model: string | Readonly<Record<string, string>>;
  /** Token that stands for each token of a picture. */
  token: string;
  /** True where `clip.vision.projection_dim` is CLIP's own, and no width of the text model. */
  namesOtherWidth?: true;
  read(keys: GgufKeys, shapeOf: ShapeOf): ToldByProjector;
}

/** By `clip.projector_type`. */
export const PROJECTORS: ReadonlyMap<string, Projector> = new Map<string, Projector>([
  [
    'qwen3vl_merger',
    {
      model: {
        qwen3: 'Qwen3VLForConditionalGeneration',
        qwen3moe: 'Qwen3VLMoeForConditionalGeneration',
        qwen35: 'Qwen3_5ForConditionalGeneration',
        qwen35moe: 'Qwen3_5MoeForConditionalGeneration',
      },
      token: '<|image_pad|>',
      read: qwen3,
    },
  ],
  [
    'qwen2vl_merger',
    { model: { qwen2: 'Qwen2VLForConditionalGeneration' }, token: '<|image_pad|>', read: qwen2 },
  ],
  [
    'qwen2.5vl_merger',
    { model: { qwen2: 'Qwen2_5_VLForConditionalGeneration' }, token: '<|image_pad|>', read: qwen2dot5 },
  ],
  ['idefics3', { model: 'Idefics3ForConditionalGeneration', token: '<image>', read: idefics3 }],
  ['pixtral', { model: 'LlavaForConditionalGeneration', token: '[IMG]', read: pixtral }],
  ['mlp', { model: 'LlavaForConditionalGeneration', token: '<image>', namesOtherWidth: true, read: llava }],
  [
    'gemma3',
    {
      model: { gemma3: 'Gemma3ForConditionalGeneration' },
      token: '<image_soft_token>',
      read: gemma3,
    },
  ],
  ['gemma4v', { model: { gemma4: 'Gemma4ForConditionalGeneration' }, token: '<|image|>', read: gemma4 }],
  ['internvl', { model: 'InternVLForConditionalGeneration', token: '<IMG_CONTEXT>', read: internVl }],
]);

function qwen3(keys: GgufKeys): ToldByProjector {
  const { patch, image, hidden, inner, layers, heads } = sizes(keys);
  const merge = keys.integer('vision.spatial_merge_size', 1, 16, 2);
  return {
    config: {
      vision_config: {
        depth: layers,
        hidden_size: hidden,
        intermediate_size: inner,
        num_heads: heads,
        patch_size: patch,
        temporal_patch_size: 2,
        spatial_merge_size: merge,
        num_position_embeddings: Math.floor(image / patch) ** 2,
        out_hidden_size: keys.integer('vision.projection_dim', 1, LIMITS.width),
        hidden_act: activation(keys, 'gelu_pytorch_tanh'),
        deepstack_visual_indexes: levelsOf(keys),
      },
    },
    imageProcessor: ofQwen(keys, { patch, merge, least: 256 * 256, most: MAX_PIXELS }),
  };
}

/** How pictures are prepared for Qwen; `least` and `most` pixels are those of its makers, for a file that has none. */
const ofQwen = (
  keys: GgufKeys,
  { patch, merge, least, most }: { patch: number; merge: number; least: number; most: number },
): JsonObject => ({
  image_processor_type: 'Qwen2VLImageProcessor',
  patch_size: patch,
  temporal_patch_size: 2,
  merge_size: merge,
  size: {
    shortest_edge: keys.integer('vision.image_min_pixels', 1, MAX_PIXELS, least),
    longest_edge: keys.integer('vision.image_max_pixels', 1, MAX_PIXELS, most),
  },
  ...colours(keys),
});

/** Qwen2-VL, whose files have another number in place of the width inside of its MLPs. */
function qwen2(keys: GgufKeys, shapeOf: ShapeOf): ToldByProjector {
  const { patch, hidden, layers, heads } = sizes(keys);
  const [inner = 4 * hidden] = shapeOf('v.blk.0.ffn_up.weight') ?? [];
  return {
    config: {
      vision_config: {
        ...ofQwen2(patch, layers, heads),
        embed_dim: hidden,
        hidden_size: keys.integer('vision.projection_dim', 1, LIMITS.width),
        mlp_ratio: inner / hidden,
        hidden_act: activation(keys, 'gelu_pytorch_tanh'),
      },
    },
    imageProcessor: ofQwen(keys, { patch, merge: 2, least: 56 * 56, most: 28 * 28 * 16_384 }),
  };
}

/** Qwen2.5-VL: the last layer of each interval sees the whole picture, the others windows of it. */
function qwen2dot5(keys: GgufKeys): ToldByProjector {
  const { patch, hidden, inner, layers, heads } = sizes(keys);
  const pattern = keys.integer('vision.n_wa_pattern', 1, LIMITS.layers);
  return {
    config: {
      vision_config: {
        ...ofQwen2(patch, layers, heads),
        hidden_size: hidden,
        intermediate_size: inner,
        out_hidden_size: keys.integer('vision.projection_dim', 1, LIMITS.width),
        hidden_act: activation(keys, 'gelu_pytorch_tanh'),
        window_size: keys.integer('vision.window_size', 1, MAX_SIDE, 112),
        fullatt_block_indexes: Array.from(
          { length: Math.floor(layers / pattern) },
          (_, i) => (i + 1) * pattern - 1,
        ),
      },
    },
    imageProcessor: ofQwen(keys, { patch, merge: 2, least: 56 * 56, most: 28 * 28 * 16_384 }),
  };
}

const ofQwen2 = (patch: number, depth: number, heads: number): JsonObject => ({
  ...{ depth, num_heads: heads, patch_size: patch },
  ...{ temporal_patch_size: 2, spatial_merge_size: 2 },
});

function idefics3(keys: GgufKeys): ToldByProjector {
  const vision = visionConfig(keys);
  const tile = vision.image_size as number;
  return {
    config: {
      model_type: 'idefics3',
      scale_factor: keys.integer('vision.projector.scale_factor', 1, 64, 2),
      vision_config: { ...vision, hidden_act: activation(keys, 'gelu_pytorch_tanh') },
    },
    imageProcessor: {
      image_processor_type: 'Idefics3ImageProcessor',
      // Four tiles a side, as the published models have, where the file does not say it.
      size: { longest_edge: keys.integer('vision.preproc_image_size', 1, MAX_SIDE, 4 * tile) },
      max_image_size: { longest_edge: tile },
      ...colours(keys),
    },
  };
}

/** The layer over the patches of a square. */
export const MERGING_LAYER = 'mm.patch_merger.weight';
const MISTRAL3 = 'Mistral3ForConditionalGeneration';

/** What LLaVA and Pixtral have in common: all layers of the file are computed. */
const ofLlava = (vision: JsonObject, isBiased: boolean): JsonObject => ({
  model_type: 'llava',
  vision_feature_layer: vision.num_hidden_layers,
  multimodal_projector_bias: isBiased,
  projector_hidden_act: 'gelu',
  vision_config: vision,
});

/** Pixtral, and Mistral Small 3.1 and later, whose patches are merged by squares. */
function pixtral(keys: GgufKeys, shapeOf: ShapeOf): ToldByProjector {
  const merge = shapeOf(MERGING_LAYER) && keys.integer('vision.spatial_merge_size', 1, 16);
  const vision = visionConfig(keys);
  const theta = keys.number('rope.freq_base');
  return {
    config: {
      ...ofLlava(
        {
          ...vision,
          model_type: 'pixtral',
          hidden_act: activation(keys, 'gelu'),
          ...(theta !== undefined && { rope_parameters: { rope_theta: theta } }),
        },
        shapeOf('mm.1.bias') !== undefined,
      ),
      vision_feature_select_strategy: 'full',
      ...(merge !== undefined && { spatial_merge_size: merge, architectures: [MISTRAL3] }),
    },
    imageProcessor: {
      image_processor_type: 'PixtralImageProcessor',
      size: { longest_edge: vision.image_size },
      ...colours(keys),
    },
  };
}

function llava(keys: GgufKeys, shapeOf: ShapeOf): ToldByProjector {
  // Those of LLaVA-NeXT see parts of a picture too, and others read several layers.
  for (const key of ['vision.image_grid_pinpoints', 'vision.feature_layer'])
    if ((keys.list(key)?.length ?? 0) > (key.endsWith('layer') ? 1 : 0))
      throw keys.error(key, 'left out: such a LLaVA is not supported', 'a list');
  const vision = visionConfig(keys);
  const side = vision.image_size;
  return {
    config: ofLlava(
      { ...vision, model_type: 'clip_vision_model', hidden_act: activation(keys, 'gelu') },
      shapeOf('mm.0.bias') !== undefined,
    ),
    imageProcessor: {
      image_processor_type: 'CLIPImageProcessor',
      size: { shortest_edge: side },
      crop_size: side,
      ...colours(keys),
    },
  };
}

/** Most tiles of a picture where the file does not say it, as the published models have. */
const TILES = 12;
const MAX_TILES = 64;

/** InternVL. What kind of InternViT it is shows in its tensors: RMS norms have no biases, and only the large one norms queries and keys. */
function internVl(keys: GgufKeys, shapeOf: ShapeOf): ToldByProjector {
  const vision = visionConfig(keys);
  const image = vision.image_size as number;
  const merge = keys.integer('vision.projector.scale_factor', 1, 64, 2);
  const has = (name: string) => shapeOf(name) !== undefined;
  const most = keys.integer('vision.preproc_max_tiles', 1, MAX_TILES, TILES);
  return {
    config: {
      model_type: 'internvl',
      downsample_ratio: 1 / merge,
      image_seq_length: Math.floor(image / (vision.patch_size as number) / merge) ** 2,
      projector_hidden_act: 'gelu',
      vision_config: {
        ...vision,
        hidden_act: activation(keys, 'gelu'),
        attention_bias: has('v.blk.0.attn_q.bias'),
        use_qk_norm: has('v.blk.0.attn_q_norm.weight'),
        norm_type: has('v.blk.0.ln1.bias') ? 'layer_norm' : 'rms_norm',
      },
    },
    imageProcessor: {
      image_processor_type: 'GotOcr2ImageProcessor',
      size: { height: image, width: image },
      min_patches: keys.integer('vision.preproc_min_tiles', 1, most, 1),
      max_patches: most,
      ...colours(keys),
    },
  };
}
