import { LIMITS } from '../../checkpoints/config-fields.js';
import type { JsonObject } from '../../checkpoints/file-reading.js';
import type { GgufKeys } from '../../checkpoints/gguf-keys.js';

/** Sides of pictures and patches in pixels. */
export const MAX_SIDE = 2 ** 14;
export const MAX_PIXELS = 2 ** 24;

/** What a projector's file says, in the words of a folder with safetensors: its config.json and its preprocessor_config.json. */
export interface ToldByProjector {
  /** Its class stands in `architectures` where the file gives it. */
  config: JsonObject & { architectures?: string[] };
  imageProcessor: JsonObject;
  /** Texts of tokens about a picture, in the words of tokenizer_config.json. Absent: none are needed. */
  tokenizer?: JsonObject;
}

/** Shape of a tensor of the file; undefined: it has none of that name. */
export type ShapeOf = (name: string) => readonly number[] | undefined;

/** Numbers of GGUF are f32: the shortest decimal of one, as a JSON file has it. */
export function shortest(value: number): number {
  for (let digits = 1; digits < 9; digits++) {
    const decimal = Number(value.toPrecision(digits));
    if (Math.fround(decimal) === Math.fround(value)) return decimal;
  }
  return value;
}

/** Sizes that all files have. */
export function sizes(keys: GgufKeys) {
  const patch = keys.integer('vision.patch_size', 1, MAX_SIDE);
  return {
    patch,
    image: keys.integer('vision.image_size', patch, MAX_SIDE),
    hidden: keys.integer('vision.embedding_length', 1, LIMITS.width),
    inner: keys.integer('vision.feed_forward_length', 1, LIMITS.width),
    layers: keys.integer('vision.block_count', 1, LIMITS.layers),
    heads: keys.integer('vision.attention.head_count', 1, LIMITS.heads),
  };
}

/** Sizes of towers by the names that most configurations have for them. */
export function visionConfig(keys: GgufKeys): JsonObject {
  const { patch, image, hidden, inner, layers, heads } = sizes(keys);
  return {
    hidden_size: hidden,
    intermediate_size: inner,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    image_size: image,
    patch_size: patch,
    layer_norm_eps: shortest(keys.positive('vision.attention.layer_norm_epsilon')),
  };
}

/** Means and deviations of the channels, which every file has. */
export function colours(keys: GgufKeys): JsonObject {
  const channels = (key: string) => {
    const list = Array.from(keys.list(key) ?? [], Number).map(shortest);
    if (list.length === 3 && list.every(Number.isFinite)) return list;
    throw keys.error(key, 'a list of 3 numbers', list.length === 0 ? undefined : list.join(', '));
  };
  return { image_mean: channels('vision.image_mean'), image_std: channels('vision.image_std') };
}

/** The activation of the tower's layers: the file says GELU, of which there are two, SiLU, or nothing for CLIP's. */
export function activation(keys: GgufKeys, gelu: string): string {
  if (keys.boolean('use_gelu')) return gelu;
  return keys.boolean('use_silu') ? 'silu' : 'quick_gelu';
}

/** Layers whose rows go to the text model too. */
export function levelsOf(keys: GgufKeys): number[] {
  const isLevel = Array.from(keys.list('vision.is_deepstack_layers') ?? []);
  return isLevel.flatMap((is, layer) => (is ? [layer] : []));
}
