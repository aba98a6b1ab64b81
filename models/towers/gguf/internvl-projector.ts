import type { GgufKeys } from '../../checkpoints/gguf-keys.js';
import { activation, colours, type ShapeOf, type ToldByProjector, visionConfig } from './projector-fields.js';

/** Most tiles of a picture where the file does not say it, as the published models have. */
const TILES = 12;
const MAX_TILES = 64;

/** InternVL. What kind of InternViT it is shows in its tensors: RMS norms have no biases, and only the large one norms queries and keys. */
export function internVl(keys: GgufKeys, shapeOf: ShapeOf): ToldByProjector {
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
