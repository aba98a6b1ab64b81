import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configOfHuggingFace } from '../../../models/checkpoints/huggingface-config.js';
import { openCheckpoint } from '../../../models/checkpoints/open-checkpoint.js';
import { unwrapConfig, unwrapTensorName } from '../../../models/checkpoints/wrappers.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { MADE_MODELS, writeMadeModel } from '../../support/made-models.js';

const folder = temporaryFolder('skein-wrappers');

const read = (json: Record<string, unknown>) => {
  const { where, fields } = unwrapConfig('config.json', json);
  return configOfHuggingFace(where, fields, null);
};

describe('the text model of a published config', () => {
  it('Gemma 3 4B: what text_config leaves out is what its class has', () => {
    const text_config = {
      hidden_size: 2560,
      intermediate_size: 10240,
      model_type: 'gemma3_text',
      num_hidden_layers: 34,
      rope_scaling: { factor: 8, rope_type: 'linear' },
      sliding_window: 1024,
    };
    const config = read({
      architectures: ['Gemma3ForConditionalGeneration'],
      eos_token_id: [1, 106],
      text_config,
      vision_config: { hidden_size: 1152 },
    });
    expect(config).toMatchObject({
      architecture: 'gemma3',
      vocabSize: 262208,
      numHeads: 8,
      numKvHeads: 4,
      headDim: 256,
      maxPositions: 131072,
      tieWordEmbeddings: true,
      eosTokenIds: [1, 106],
      rope: { theta: 1_000_000, scaling: { type: 'linear', factor: 8 } },
      localRopeTheta: 10_000,
    });
    expect(config.layerWindows!.slice(0, 7)).toEqual([1024, 1024, 1024, 1024, 1024, null, 1024]);
  });

  it('Qwen2.5-VL 7B: its fields stand among those of the wrapper, and mrope is plain', () => {
    const config = read({
      architectures: ['Qwen2_5_VLForConditionalGeneration'],
      hidden_size: 3584,
      intermediate_size: 18944,
      max_position_embeddings: 128000,
      max_window_layers: 28,
      model_type: 'qwen2_5_vl',
      num_attention_heads: 28,
      num_hidden_layers: 28,
      num_key_value_heads: 4,
      rms_norm_eps: 1e-6,
      rope_theta: 1e6,
      sliding_window: 32768,
      use_sliding_window: false,
      tie_word_embeddings: false,
      vision_config: { depth: 32 },
      rope_scaling: { type: 'mrope', mrope_section: [16, 24, 24] },
      vocab_size: 152064,
    });
    expect(config).toMatchObject({
      architecture: 'qwen2',
      headDim: 128,
      slidingWindow: null,
      tieWordEmbeddings: false,
      rope: { theta: 1e6, rotaryDim: 128, scaling: { type: 'none' } },
    });
  });

  it('Pixtral 12B: a Llava around a Mistral, whose number of heads is that of its class', () => {
    const text_config = {
      head_dim: 128,
      hidden_size: 5120,
      intermediate_size: 14336,
      max_position_embeddings: 1024000,
      model_type: 'mistral',
      num_hidden_layers: 40,
      num_key_value_heads: 8,
      rms_norm_eps: 1e-5,
      rope_theta: 1e9,
      sliding_window: null,
      vocab_size: 131072,
    };
    const config = read({ architectures: ['LlavaForConditionalGeneration'], text_config });
    expect(config).toMatchObject({ architecture: 'mistral', numHeads: 32, slidingWindow: null });
  });

  it('Mistral Small 3 without any field of its own', () => {
    expect(read({ architectures: ['Mistral3ForConditionalGeneration'], text_config: {} })).toMatchObject({
      architecture: 'mistral',
      hiddenSize: 5120,
      vocabSize: 131072,
      rope: { theta: 1e9 },
    });
  });

  it('is tied if either config says so', () => {
    const tied = (outer: object, inner: object) =>
      read({ architectures: ['LlavaForConditionalGeneration'], text_config: inner, ...outer })
        .tieWordEmbeddings;
    expect(tied({}, {})).toBe(false);
    expect(tied({}, { tie_word_embeddings: true })).toBe(true);
    expect(tied({ tie_word_embeddings: false }, { tie_word_embeddings: true })).toBe(true);
    expect(tied({ tie_word_embeddings: true }, {})).toBe(true);
  });

  it.each<[string, Record<string, unknown>, RegExp]>([
    ['no object', { text_config: [1] }, /^config\.json: text_config should be an object\.$/],
    [
      'another text model',
      { text_config: { model_type: 'mamba' } },
      /^config\.json: the text model of LlavaForConditionalGeneration should be one of llama, .*found "mamba"\.$/,
    ],
    [
      'a wrong field',
      { text_config: { hidden_size: 'wide' } },
      /^config\.json: text_config: hidden_size should be a whole number .*found "wide"\.$/,
    ],
  ])('is refused with %s', (_, fields, message) => {
    expect(() => read({ architectures: ['LlavaForConditionalGeneration'], ...fields })).toThrow(message);
  });
});

it('names of tensors are those of a text model, in all layouts', () => {
  for (const [name, expected] of [
    ['model.layers.0.mlp.up_proj.weight', 'model.layers.0.mlp.up_proj.weight'],
    ['language_model.model.layers.0.mlp.up_proj.weight', 'model.layers.0.mlp.up_proj.weight'],
    ['model.language_model.layers.0.mlp.up_proj.weight', 'model.layers.0.mlp.up_proj.weight'],
    ['model.language_model.embed_tokens.weight', 'model.embed_tokens.weight'],
    ['model.text_model.norm.weight', 'model.norm.weight'],
    ['language_model.lm_head.weight', 'lm_head.weight'],
    ['language_model.other.weight', 'language_model.other.weight'],
  ])
    expect(unwrapTensorName(name!)).toEqual({ name: expected });
  for (const [name, part] of [
    ['visual.blocks.0.attn.qkv.weight', 'visual'],
    ['model.visual.merger.norm.weight', 'model.visual'],
    ['vision_tower.layers.0.norm.weight', 'vision_tower'],
    ['model.connector.modality_projection.proj.weight', 'model.connector'],
    ['model.image_newline', 'model.image_newline'],
  ])
    expect(unwrapTensorName(name!)).toEqual({ part });
});

it('what is left aside is counted, and said', () => {
  const made = MADE_MODELS.find(({ name }) => name === 'qwen3-vl')!;
  const { leftAside, remarks, tensors } = openCheckpoint(writeMadeModel(join(folder, made.name), made));
  const ofTower = made.tensors.filter(([name]) => name.startsWith('model.visual.')).length;
  expect(leftAside).toEqual([{ part: 'model.visual', tensors: ofTower }]);
  expect(tensors.size + ofTower).toBe(made.tensors.length);
  expect(remarks).toEqual(['Qwen3VLForConditionalGeneration runs as the text model inside it.']);
});
