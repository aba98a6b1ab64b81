import { describe, expect, it } from 'vitest';
import { configOfHuggingFace } from '../../../models/checkpoints/huggingface-config.js';
import { unwrapConfig } from '../../../models/checkpoints/wrappers.js';

const DIMENSIONS = {
  vocab_size: 100,
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 6,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 512,
  hidden_size_per_layer_input: 0,
};
const [LOCAL, WHOLE] = ['sliding_attention', 'full_attention'];

const read = (changes: object = {}, name = 'Gemma4ForCausalLM') =>
  configOfHuggingFace('config.json', { architectures: [name], ...DIMENSIONS, ...changes }, null);

describe('a config.json of Gemma 4', () => {
  it('means what transformers takes where it says little: every sixth layer attends to all, with wider heads', () => {
    const config = read();
    expect(config).toMatchObject({
      ...{ architecture: 'gemma4', headDim: 512, tieWordEmbeddings: true, activation: 'geluTanh' },
      ...{ attentionScale: 1, slidingWindow: null, layerWindows: [512, 512, 512, 512, 512, null] },
      rope: {
        theta: 1_000_000,
        rotaryDim: 512,
        scaling: { type: 'proportional', turnedDim: 128, factor: 1 },
      },
      localRopeTheta: 10_000,
    });
    const shape = { numHeads: 4, numKvHeads: 2, headDim: 256, intermediateSize: 96 };
    expect(config.layerShapes).toEqual([...new Array(5).fill(shape), { ...shape, headDim: 512 }]);
    for (const absent of ['cacheLayers', 'keysAsValues', 'experts', 'layerInputWidth', 'outputSoftCap'])
      expect(config).not.toHaveProperty(absent);
  });

  it('may let the last layers attend to what earlier ones of their kind keep, with MLPs of twice the width', () => {
    const layer_types = [LOCAL, WHOLE, LOCAL, LOCAL, WHOLE, WHOLE];
    const config = read({ layer_types, num_kv_shared_layers: 3, use_double_wide_mlp: true });
    expect(config.cacheLayers).toEqual([0, 1, 2, 2, 1, 1]);
    expect(config.layerShapes?.map(({ intermediateSize }) => intermediateSize)).toEqual([
      96, 96, 96, 192, 192, 192,
    ]);
    expect(() =>
      read({ layer_types: [LOCAL, LOCAL, WHOLE, LOCAL, LOCAL, WHOLE], num_kv_shared_layers: 4 }),
    ).toThrow(
      /num_kv_shared_layers should be a number that leaves a layer of each kind before those that share, found 4/,
    );
  });

  it('may have experts next to each MLP, and keys as values in layers without a window', () => {
    const experts = { enable_moe_block: true, num_experts: 8, top_k_experts: 3, moe_intermediate_size: 24 };
    const config = read({ ...experts, attention_k_eq_v: true, num_global_key_value_heads: 1 });
    expect(config.experts).toEqual({ count: 8, used: 3, width: 24, normalize: true, shareScales: true });
    expect(config.keysAsValues).toEqual([false, false, false, false, false, true]);
    expect(config.layerShapes?.map(({ numKvHeads }) => numKvHeads)).toEqual([2, 2, 2, 2, 2, 1]);
    // Heads of their own are for such layers alone.
    expect(read({ num_global_key_value_heads: 1 }).layerShapes?.at(-1)?.numKvHeads).toBe(2);
  });

  it.each([
    [{ use_bidirectional_attention: 'all' }, /use_bidirectional_attention should be null or "vision"/],
    [{ use_bidirectional_attention: 'words' }, /use_bidirectional_attention should be true or false/],
    [{ rope_parameters: 'x' }, /rope_parameters should be an object, found "x"/],
    [
      { rope_parameters: { full_attention: { rope_type: 'proportional', partial_rotary_factor: 2 } } },
      /partial_rotary_factor should be a number up to 1, found 2/,
    ],
    [
      { hidden_size_per_layer_input: 8, vocab_size_per_layer_input: 99 },
      /vocab_size_per_layer_input should be vocab_size, which is 100: other tables are not supported, found 99/,
    ],
    [
      { num_experts: 8 },
      /num_experts should be absent: Gemma4ForCausalLM without enable_moe_block has no experts/,
    ],
    [
      { per_layer_config: { '5': { head_dim: 32 }, '6': {} } },
      /per_layer_config should be head_dim and num_key_value_heads of layers/,
    ],
    [{ per_layer_config: { '5': { sliding_window: 3 } } }, /per_layer_config should be head_dim/],
    [
      { per_layer_config: { '1': { head_dim: 32 }, '5': { head_dim: 32 } } },
      /one head_dim of those that have a window/,
    ],
    [{ global_head_dim: 1 }, /global_head_dim should be a whole number from 2/],
    [{ attention_k_eq_v: true, num_global_key_value_heads: 3 }, /3/],
    [{ num_kv_shared_layers: 6 }, /num_kv_shared_layers should be a whole number from 0 to 5/],
    [{ layer_types: [LOCAL] }, /layer_types should be 6 times one of/],
    [{ enable_moe_block: true, num_experts: 8, top_k_experts: 9, moe_intermediate_size: 8 }, /top_k_experts/],
  ])('is refused by a sentence: %o', (changes, message) => {
    expect(() => read(changes)).toThrow(message);
  });

  it('reads the text model of one that sees, and of the unified one', () => {
    const inside = (wrapper: string, model_type: string) => {
      const text_config = { ...DIMENSIONS, model_type };
      const { where, fields } = unwrapConfig('config.json', { architectures: [wrapper], text_config });
      return configOfHuggingFace(where, fields, null);
    };
    expect(inside('Gemma4ForConditionalGeneration', 'gemma4_text').layerWindows?.[0]).toBe(512);
    // As the larger ones have it, whose pictures attend both ways, in layers with a window alone.
    expect(read({ use_bidirectional_attention: 'vision' })).toEqual({
      ...read(),
      bothWaysInPictures: 'windowed',
    });
    expect(inside('Gemma4UnifiedForConditionalGeneration', 'gemma4_unified_text')).toMatchObject({
      architecture: 'gemma4',
      layerWindows: [1024, 1024, 1024, 1024, 1024, null],
    });
  });
});
