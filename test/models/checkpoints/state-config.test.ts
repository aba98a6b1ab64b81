import { describe, expect, it } from 'vitest';
import { configOfHuggingFace } from '../../../models/checkpoints/huggingface-config.js';
import { namedTensors } from '../../../models/checkpoints/tensor-layout.js';

const DIMENSIONS = {
  vocab_size: 100,
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 512,
};
const [LFM2, QWEN] = ['Lfm2ForCausalLM', 'Qwen3_5ForCausalLM'];
const [FULL, CONV, LINEAR] = ['full_attention', 'conv', 'linear_attention'];

const read = (name: string, changes: object = {}) =>
  configOfHuggingFace('config.json', { architectures: [name], ...DIMENSIONS, ...changes }, null);

describe('a config.json of layers with states that says little means what transformers takes', () => {
  it('Qwen3.5: every fourth layer attends, heads of 256 of which a quarter turns', () => {
    expect(read(QWEN)).toMatchObject({
      architecture: 'qwen35',
      attendingLayers: [false, false, false, true],
      headDim: 256,
      rope: { rotaryDim: 64 },
      shortConv: { taps: 4, biased: false },
      delta: { keyHeads: 16, valueHeads: 32, keyDim: 128, valueDim: 128 },
    });
    expect(read(QWEN, { full_attention_interval: 2 }).attendingLayers).toEqual([false, true, false, true]);
    const layer_types = [FULL, LINEAR, LINEAR, FULL];
    expect(read(QWEN, { layer_types, full_attention_interval: 2 }).attendingLayers).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });

  it('LFM2: all layers attend, or those of a list, by either name', () => {
    expect(read(LFM2)).toMatchObject({
      architecture: 'lfm2',
      attendingLayers: [true, true, true, true],
      tieWordEmbeddings: true,
      shortConv: { taps: 3, biased: false },
      rope: { theta: 1_000_000 },
    });
    const attending = [false, false, true, false];
    expect(read(LFM2, { full_attn_idxs: [2] }).attendingLayers).toEqual(attending);
    const layer_types = [CONV, CONV, FULL, CONV];
    expect(read(LFM2, { layer_types, full_attn_idxs: [0] }).attendingLayers).toEqual(attending);
  });

  it('LFM2: the width of the MLP is adjusted, unless it says not', () => {
    // As in transformers: 2/3 of it, times the multiplier, up to a multiple of 256.
    expect(read(LFM2, { block_ff_dim: 1200 }).intermediateSize).toBe(1024);
    expect(read(LFM2, { block_ff_dim: 1200, block_multiple_of: 100 }).intermediateSize).toBe(800);
    const multiplied = { block_ff_dim: 1200, block_multiple_of: 7, block_ffn_dim_multiplier: 1.5 };
    expect(read(LFM2, multiplied).intermediateSize).toBe(1204);
    expect(read(LFM2, { block_ff_dim: 1200, block_auto_adjust_ff_dim: false }).intermediateSize).toBe(1200);
    expect(read(LFM2, { block_auto_adjust_ff_dim: false }).intermediateSize).toBe(96);
  });
});

describe('what a config.json of layers with states gets wrong is one sentence', () => {
  it.each<[string, object, RegExp]>([
    [LFM2, { layer_types: [CONV, FULL] }, /layer_types should be 4 times one of full_attention, conv/],
    [
      LFM2,
      { layer_types: Array(4).fill(LINEAR) },
      /layer_types should be 4 times one of full_attention, conv/,
    ],
    [LFM2, { layer_types: Array(4).fill(CONV) }, /layer_types should be at least one layer that attends/],
    [LFM2, { layer_types: 'conv' }, /layer_types should be 4 times one of/],
    [LFM2, { full_attn_idxs: [4] }, /full_attn_idxs should be a list of layers from 0 to 3/],
    [LFM2, { full_attn_idxs: [-1] }, /full_attn_idxs should be a list of layers from 0 to 3/],
    [LFM2, { full_attn_idxs: [0.5] }, /full_attn_idxs should be a list of layers from 0 to 3/],
    [LFM2, { full_attn_idxs: 2 }, /full_attn_idxs should be a list of layers from 0 to 3/],
    [LFM2, { full_attn_idxs: [] }, /layer_types should be at least one layer that attends/],
    [LFM2, { conv_L_cache: 1 }, /conv_L_cache should be/],
    [LFM2, { conv_L_cache: 65 }, /conv_L_cache should be/],
    [LFM2, { conv_bias: 'no' }, /conv_bias should be true or false/],
    [LFM2, { block_ffn_dim_multiplier: 0 }, /block_ffn_dim_multiplier should be a number greater than 0/],
    [LFM2, { block_ffn_dim_multiplier: 1e9 }, /(block_ff|intermediate)\w+ should be/],
    [
      QWEN,
      { layer_types: [LINEAR, FULL] },
      /layer_types should be 4 times one of full_attention, linear_att/,
    ],
    [QWEN, { layer_types: Array(4).fill(CONV) }, /layer_types should be 4 times one of/],
    [QWEN, { layer_types: Array(4).fill(LINEAR) }, /layer_types should be at least one layer that attends/],
    [QWEN, { full_attention_interval: 5 }, /layer_types should be at least one layer that attends/],
    [QWEN, { full_attention_interval: 0 }, /full_attention_interval should be/],
    [
      QWEN,
      { linear_num_value_heads: 24 },
      /linear_num_value_heads should be a multiple of the 16 heads of keys/,
    ],
    [QWEN, { linear_num_key_heads: 0 }, /linear_num_key_heads should be/],
    [QWEN, { linear_key_head_dim: 1025 }, /linear_key_head_dim should be/],
    [QWEN, { linear_value_head_dim: 0 }, /linear_value_head_dim should be/],
    [QWEN, { linear_conv_kernel_dim: 1 }, /linear_conv_kernel_dim should be/],
    [QWEN, { attention_bias: true }, /attention_bias should be false: biases of queries with gates/],
  ])('%s %o', (name, changes, message) => {
    expect(() => read(name, changes)).toThrow(message);
  });
});

describe('tensors of layers with states', () => {
  const small = { head_dim: 8, linear_num_key_heads: 1, linear_num_value_heads: 2 };
  const tensors = (name: string, tensor: string, shape: number[]) => {
    const byteLength = 4 * shape.reduce((product, one) => product * one, 1);
    const raw = { name: tensor, file: 'model.safetensors', offset: 64, type: 'F32', shape, byteLength };
    return namedTensors([raw] as unknown as Parameters<typeof namedTensors>[0], read(name, small));
  };

  it('of a convolution are one vector', () => {
    const [conv, own] = ['model.layers.0.linear_attn.conv1d.weight', 'model.layers.0.conv.conv.weight'];
    expect(tensors(QWEN, conv, [24, 1, 4]).get(conv)!.shape).toEqual([96]);
    expect(tensors(LFM2, own, [64, 1, 3]).get(own)!.shape).toEqual([192]);
  });

  it('of queries and gates are slices, head by head', () => {
    const q = 'model.layers.3.self_attn.q_proj';
    const found = tensors(QWEN, `${q}.weight`, [64, 64]);
    const bytes = 8 * 64 * 4;
    expect(found.size).toBe(8);
    expect(found.get(`${q}.0.query.weight`)).toMatchObject({ shape: [8, 64], offset: 64, byteLength: bytes });
    expect(found.get(`${q}.0.gate.weight`)).toMatchObject({ offset: 64 + bytes });
    expect(found.get(`${q}.3.gate.weight`)).toMatchObject({ offset: 64 + 7 * bytes, byteLength: bytes });
  });

  it('of norms multiply by 1 more, but for those of the delta rule', () => {
    const [norm, own] = ['model.layers.0.input_layernorm.weight', 'model.layers.0.linear_attn.norm.weight'];
    expect(tensors(QWEN, norm, [64]).get(norm)).toMatchObject({ addend: 1 });
    expect(tensors(QWEN, own, [128]).get(own)).not.toHaveProperty('addend');
    expect(tensors(LFM2, 'model.layers.0.operator_norm.weight', [64]).get(norm)).not.toHaveProperty('addend');
  });

  it.each<[string, string, number[], number[]]>([
    [QWEN, 'model.layers.0.linear_attn.conv1d.weight', [24, 1, 4], [24, 1, 3]],
    [QWEN, 'model.layers.0.linear_attn.conv1d.weight', [24, 1, 4], [24, 2, 4]],
    [QWEN, 'model.layers.0.linear_attn.conv1d.weight', [96, 1, 4], [96]],
    [LFM2, 'model.layers.0.conv.conv.weight', [64, 1, 3], [64, 1, 4]],
    [QWEN, 'model.layers.3.self_attn.q_proj.weight', [64, 64], [32, 64]],
    [QWEN, 'model.layers.3.self_attn.q_proj.weight', [64, 64], [64, 32]],
  ])('%s: %s is refused unless it has the shape %j', (name, tensor, expected, found) => {
    const both = `should have the shape [${expected.join(', ')}], found [${found.join(', ')}].`;
    expect(() => tensors(name, tensor, found)).toThrow(`model.safetensors: tensor ${tensor} ${both}`);
  });
});
