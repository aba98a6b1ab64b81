import { CheckpointError } from './checkpoint.js';
import { isObject, type JsonObject } from './file-reading.js';

/**
 * Models that also read pictures or sound, and whose text model is an architecture of ours: config.json has it under
 * text_config, and the tensors of a text model have a longer name. They run as text models; the rest is left aside.
 *
 *   config.json   { architectures: [WRAPPER], text_config: { ... }, vision_config }  ->  { ... , architectures: [text model] }
 *   tensors       model.language_model.layers.0.mlp.up_proj.weight                   ->  model.layers.0.mlp.up_proj.weight
 *                 model.visual.blocks.0.attn.qkv.weight                              ->  left aside, as part of "model.visual"
 */
interface Wrapper {
  /** model_type of its text model, where text_config does not say. */
  text: string;
  /** Fields of text_config that this wrapper takes for granted where there is no text_config field; from its config class. */
  usual?: JsonObject;
  /** tie_word_embeddings where neither config says; transformers' default. */
  tied?: boolean;
}

const MISTRAL3: JsonObject = {
  head_dim: 128,
  hidden_size: 5120,
  intermediate_size: 32768,
  max_position_embeddings: 131072,
  num_attention_heads: 32,
  num_hidden_layers: 40,
  num_key_value_heads: 8,
  rms_norm_eps: 1e-5,
  rope_theta: 1e9,
  sliding_window: null,
  vocab_size: 131072,
};

/** By the name in "architectures". */
const WRAPPERS = new Map<string, Wrapper>([
  ['Qwen2VLForConditionalGeneration', { text: 'qwen2_vl_text' }],
  ['Qwen2_5_VLForConditionalGeneration', { text: 'qwen2_5_vl_text' }],
  ['Qwen3VLForConditionalGeneration', { text: 'qwen3_vl_text' }],
  ['Qwen3VLMoeForConditionalGeneration', { text: 'qwen3_vl_moe_text' }],
  ['Qwen3_5ForConditionalGeneration', { text: 'qwen3_5_text' }],
  ['Qwen3_5MoeForConditionalGeneration', { text: 'qwen3_5_moe_text' }],
  ['Gemma3ForConditionalGeneration', { text: 'gemma3_text', tied: true }],
  ['Gemma4ForConditionalGeneration', { text: 'gemma4_text', tied: true }],
  ['Gemma4UnifiedForConditionalGeneration', { text: 'gemma4_unified_text', tied: true }],
  ['Mistral3ForConditionalGeneration', { text: 'mistral', usual: MISTRAL3, tied: true }],
  ['LlavaForConditionalGeneration', { text: 'llama' }],
  ['LlavaNextForConditionalGeneration', { text: 'llama' }],
  ['LlavaOnevisionForConditionalGeneration', { text: 'qwen2' }],
  ['InternVLForConditionalGeneration', { text: 'qwen2', tied: true }],
  ['Idefics3ForConditionalGeneration', { text: 'llama', usual: { rms_norm_eps: 1e-5 } }],
  ['SmolVLMForConditionalGeneration', { text: 'llama', usual: { rms_norm_eps: 1e-5 } }],
]);

/** A text model inside of a wrapper: its name in "architectures", and what its config class takes where config.json is silent. */
interface TextModel {
  name: string;
  usual: JsonObject;
  /** Its sections of RoPE take turns, whatever the config says. */
  interleaves?: true;
  /** Its first layers add levels of what the tower makes of a picture. */
  hasLevels?: true;
  /** Tokens of a picture attend to all of it in all layers, whatever the config says. */
  bothWays?: true;
}

const dimensions = (
  vocab_size: number,
  hidden_size: number,
  intermediate_size: number,
  num_hidden_layers: number,
  num_attention_heads: number,
  num_key_value_heads: number | null,
  max_position_embeddings: number,
) => ({
  vocab_size,
  hidden_size,
  intermediate_size,
  num_hidden_layers,
  num_attention_heads,
  num_key_value_heads,
  max_position_embeddings,
});

const QWEN2_VL: TextModel = {
  name: 'Qwen2ForCausalLM',
  usual: {
    ...dimensions(152064, 8192, 29568, 80, 64, 8, 32768),
    max_window_layers: 80,
    rms_norm_eps: 1e-5,
    rope_theta: 1e6,
  },
};

/** Field of the text model's configuration that is true where its files have gate and up of each expert in one matrix. */
export const STACKED_FIELD = 'stacked_experts';

/** By model_type. A config inside of another is written without the fields that have the values of its class. */
const TEXT_MODELS = new Map<string, TextModel>([
  ['llama', { name: 'LlamaForCausalLM', usual: dimensions(32000, 4096, 11008, 32, 32, null, 2048) }],
  ['mistral', { name: 'MistralForCausalLM', usual: dimensions(32000, 4096, 14336, 32, 32, 8, 131072) }],
  [
    'ministral3',
    { name: 'Ministral3ForCausalLM', usual: dimensions(131072, 4096, 14336, 34, 32, 8, 262144) },
  ],
  ['qwen2', { name: 'Qwen2ForCausalLM', usual: dimensions(151936, 4096, 22016, 32, 32, 32, 32768) }],
  ['qwen3', { name: 'Qwen3ForCausalLM', usual: dimensions(151936, 4096, 22016, 32, 32, 32, 32768) }],
  ['qwen2_vl_text', QWEN2_VL],
  ['qwen2_5_vl_text', QWEN2_VL],
  [
    'qwen3_5_text',
    {
      name: 'Qwen3_5ForCausalLM',
      interleaves: true,
      usual: { ...dimensions(248320, 4096, 12288, 32, 16, 4, 32768), head_dim: 256 },
    },
  ],
  [
    'qwen3_5_moe_text',
    {
      name: 'Qwen3_5MoeForCausalLM',
      interleaves: true,
      usual: { ...dimensions(248320, 2048, 1, 40, 16, 2, 32768), head_dim: 256 },
    },
  ],
  [
    'qwen3_vl_text',
    {
      name: 'Qwen3ForCausalLM',
      interleaves: true,
      hasLevels: true,
      usual: { ...dimensions(151936, 4096, 22016, 32, 32, 32, 128000), head_dim: 128, rope_theta: 500_000 },
    },
  ],
  [
    'qwen3_vl_moe_text',
    {
      name: 'Qwen3MoeForCausalLM',
      interleaves: true,
      hasLevels: true,
      usual: {
        ...dimensions(151936, 2048, 5632, 24, 16, 16, 128000),
        rope_theta: 500_000,
        moe_intermediate_size: 1408,
        num_experts_per_tok: 4,
        norm_topk_prob: true,
        [STACKED_FIELD]: true,
      },
    },
  ],
  [
    'gemma3_text',
    {
      name: 'Gemma3ForCausalLM',
      bothWays: true,
      usual: dimensions(262208, 2304, 9216, 26, 8, 4, 131072),
    },
  ],
  ['gemma4_text', { name: 'Gemma4ForCausalLM', usual: dimensions(262144, 2304, 9216, 30, 8, 4, 131072) }],
  [
    'gemma4_unified_text',
    {
      name: 'Gemma4UnifiedForCausalLM',
      usual: dimensions(262144, 2304, 9216, 30, 8, 4, 262144),
    },
  ],
]);

export const wrapperNames: readonly string[] = [...WRAPPERS.keys()];

/** The text model's configuration. */
export interface UnwrappedConfig {
  /** Names the file, and the part of it that the text model is configured by, in errors. */
  where: string;
  fields: JsonObject;
  /** Name of the wrapper; null: the model is no wrapper. */
  wrapper: string | null;
}

/** Takes the text model's configuration out of a wrapper's; any other is returned as it is. @throws CheckpointError */
export function unwrapConfig(where: string, fields: JsonObject): UnwrappedConfig {
  const name = Array.isArray(fields.architectures) ? fields.architectures[0] : undefined;
  const wrapper = typeof name === 'string' ? WRAPPERS.get(name) : undefined;
  if (wrapper === undefined) return { where, fields, wrapper: null };
  // The first configs of Qwen2-VL have the fields of their text model among their own.
  const inner = fields.text_config ?? fields;
  if (!isObject(inner)) throw new CheckpointError(`${where}: text_config should be an object.`);
  const type = inner === fields ? wrapper.text : (inner.model_type ?? wrapper.text);
  const text = typeof type === 'string' ? TEXT_MODELS.get(type) : undefined;
  if (text === undefined) {
    const found = JSON.stringify(type)?.slice(0, 100);
    throw new CheckpointError(
      `${where}: the text model of ${name} should be one of ${[...TEXT_MODELS.keys()].join(', ')} (model_type of text_config), found ${found}.`,
    );
  }
  return {
    where: inner === fields ? where : `${where}: text_config`,
    fields: {
      ...text.usual,
      ...(type === wrapper.text ? wrapper.usual : {}),
      ...tokensOf(fields),
      ...inner,
      ...ropeInSections(inner, text),
      ...(text.hasLevels && { [LEVELS_FIELD]: countLevels(fields.vision_config) }),
      ...(text.bothWays && { [BOTH_WAYS_FIELD]: true }),
      ...(fields.quantization_config == null ? {} : { quantization_config: fields.quantization_config }),
      tie_word_embeddings: isTied(fields, inner, wrapper),
      architectures: [text.name],
    },
    wrapper: name as string,
  };
}

/** Field of the text model's configuration for the number of levels that it adds. */
export const LEVELS_FIELD = 'deepstack_levels';
/** Field of the text model's configuration that is true where tokens of a picture attend to all of it in all layers. */
export const BOTH_WAYS_FIELD = 'both_ways_in_pictures';

/** Levels of a Qwen3-VL's tower; what is no list of layers is refused where the tower is read. */
function countLevels(vision: unknown): number {
  const usual = [8, 16, 24];
  const levels = isObject(vision) ? (vision.deepstack_visual_indexes ?? usual) : [];
  return Array.isArray(levels) ? levels.length : 0;
}

/** Tokens that the outer config names for both. */
function tokensOf(fields: JsonObject): JsonObject {
  const names = ['bos_token_id', 'eos_token_id', 'pad_token_id'].filter((key) => fields[key] != null);
  return Object.fromEntries(names.map((key) => [key, fields[key]]));
}

/** True if either config says so: transformers looks at the outer one, and some wrappers copy the inner one's value to it. */
function isTied(outer: JsonObject, inner: JsonObject, { tied = false }: Wrapper): unknown {
  const own = outer.tie_word_embeddings ?? inner.tie_word_embeddings ?? tied;
  return own === false && inner.tie_word_embeddings === true ? true : own;
}

/** RoPE in three sections, for time, height and width (mrope), has frequencies of plain RoPE; mrope_section says which turns by what. */
function ropeInSections(inner: JsonObject, { interleaves }: TextModel): JsonObject {
  const changed: JsonObject = {};
  for (const key of ['rope_scaling', 'rope_parameters']) {
    const rope = inner[key];
    if (!isObject(rope)) continue;
    const isNamed = (rope.rope_type ?? rope.type) === 'mrope';
    const interleaved = interleaves === true && rope.mrope_section != null;
    if (!isNamed && !interleaved) continue;
    changed[key] = {
      ...rope,
      ...(isNamed && { type: 'default', rope_type: 'default' }),
      ...(interleaved && { mrope_interleaved: true }),
    };
  }
  return changed;
}

/** Names in front of the text model's tensors, in all layouts that transformers has written. */
const TEXT_PREFIX =
  /^(?:model\.)?(?:language_model|text_model)\.(?:model\.)?(?=layers\.|embed_tokens|norm\.|per_layer_)/;
const OUTPUT_PREFIX = /^(?:model\.)?language_model\.(?=lm_head\.)/;
/** Parts that see, and what leads from them into the text model. */
const OTHER_PART =
  /^(?:model\.)?(?:visual|vision_tower|vision_model|vision_encoder|multi_modal_projector|connector|image_newline|perceiver_resampler|audio_tower|vision_embedder|embed_vision|embed_audio)(?=\.|$)/;

/** The text model's name of a wrapper's tensor, or the part that it belongs to where that is another one. */
export function unwrapTensorName(name: string): { name: string } | { part: string } {
  const [part] = OTHER_PART.exec(name) ?? [];
  if (part !== undefined) return { part };
  return { name: name.replace(TEXT_PREFIX, 'model.').replace(OUTPUT_PREFIX, '') };
}
