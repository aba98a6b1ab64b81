import { describe, expect, it } from 'vitest';
import { ConfigFields } from '../../../models/checkpoints/config-fields.js';
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
const GPT2 = { vocab_size: 100, n_embd: 64, n_head: 4, n_layer: 2, n_positions: 128 };

const read = (name: string, changes: object = {}) =>
  configOfHuggingFace(
    'config.json',
    { architectures: [name], ...(name.startsWith('GPT2') ? GPT2 : DIMENSIONS), ...changes },
    new ConfigFields('generation_config.json', {}),
  );

describe('a config.json that says little means what transformers takes', () => {
  it('Qwen2 and Qwen3: no window, heads of their own size', () => {
    expect(read('Qwen2ForCausalLM', { sliding_window: 4096 })).toMatchObject({
      slidingWindow: null,
      headDim: 16,
    });
    expect(read('Qwen3ForCausalLM')).toMatchObject({
      slidingWindow: null,
      headDim: 128,
      attentionBias: false,
    });
    expect(read('Qwen3ForCausalLM', { head_dim: 32, attention_bias: true })).toMatchObject({
      headDim: 32,
      attentionBias: true,
    });
  });

  it('Qwen: a window in the upper layers, in all, or by layer_types', () => {
    const window = { use_sliding_window: true, sliding_window: 32 };
    const upper = read('Qwen2ForCausalLM', { ...window, max_window_layers: 3 });
    expect(upper).toMatchObject({ slidingWindow: null, layerWindows: [null, null, null, 32] });
    const all = read('Qwen2ForCausalLM', { ...window, max_window_layers: 0 });
    expect(all.slidingWindow).toBe(32);
    expect(all.layerWindows).toBeUndefined();
    expect(read('Qwen2ForCausalLM', window).slidingWindow).toBeNull();
    const [full, sliding] = ['full_attention', 'sliding_attention'];
    const typed = read('Qwen3ForCausalLM', { ...window, layer_types: [sliding, full, full, sliding] });
    expect(typed.layerWindows).toEqual([32, null, null, 32]);
  });

  it('Phi-3: a window in all layers, RoPE on a part of each head', () => {
    const phi3 = read('Phi3ForCausalLM', { sliding_window: 2047, partial_rotary_factor: 0.5 });
    expect(phi3).toMatchObject({ slidingWindow: 2047, rope: { rotaryDim: 8, scaling: { type: 'none' } } });
    expect(read('Phi3ForCausalLM').slidingWindow).toBeNull();
    const factors = Array.from({ length: 8 }, () => 1);
    const rope_scaling = { type: 'su', short_factor: factors, long_factor: factors };
    const long = read('Phi3ForCausalLM', { rope_scaling, original_max_position_embeddings: 128 });
    expect(long.rope.scaling).toMatchObject({ type: 'longrope', factor: 4, originalMaxPositions: 128 });
  });

  it('Gemma 2: every other layer has a window, scores and logits are capped', () => {
    expect(read('Gemma2ForCausalLM')).toMatchObject({
      headDim: 256,
      tieWordEmbeddings: true,
      activation: 'geluTanh',
      layerWindows: [4096, null, 4096, null],
      attentionScale: 1 / 16,
      attentionSoftCap: 50,
      outputSoftCap: 30,
    });
    const uncapped = read('Gemma2ForCausalLM', {
      attn_logit_softcapping: null,
      final_logit_softcapping: null,
    });
    expect(uncapped.attentionSoftCap).toBeUndefined();
    expect(uncapped.outputSoftCap).toBeUndefined();
  });

  it('Gemma 3: five layers with a window to one without, and a RoPE for each kind', () => {
    const gemma3 = read('Gemma3ForCausalLM', { num_hidden_layers: 7, sliding_window: 512 });
    expect(gemma3.layerWindows).toEqual([512, 512, 512, 512, 512, null, 512]);
    expect(gemma3).toMatchObject({ localRopeTheta: 10_000, rope: { theta: 1_000_000, rotaryDim: 256 } });
    expect(gemma3.attentionSoftCap).toBeUndefined();
    const older = {
      rope_theta: 5000,
      rope_local_base_freq: 700,
      rope_scaling: { rope_type: 'linear', factor: 8 },
    };
    expect(read('Gemma3ForCausalLM', older)).toMatchObject({
      localRopeTheta: 700,
      rope: { theta: 5000, scaling: { type: 'linear', factor: 8 } },
    });
    const full_attention = { rope_type: 'linear', factor: 4, rope_theta: 9000 };
    const rope_parameters = { full_attention, sliding_attention: { rope_type: 'default', rope_theta: 600 } };
    expect(read('Gemma3ForCausalLM', { rope_parameters })).toMatchObject({
      localRopeTheta: 600,
      rope: { theta: 9000, scaling: { type: 'linear', factor: 4 } },
    });
  });

  it('Gemma 3: where all layers have a window the engine keeps no more, and they keep their RoPE', () => {
    const local = read('Gemma3ForCausalLM', { sliding_window: 64 });
    expect(local).toMatchObject({ slidingWindow: 64, layerWindows: [64, 64, 64, 64] });
    const global = read('Gemma3ForCausalLM', { sliding_window_pattern: 1 });
    expect(global.slidingWindow).toBeNull();
    expect(global.layerWindows).toBeUndefined();
  });

  it('Gemma: heads of 256, tied, and the approximation of GELU by either name', () => {
    expect(read('GemmaForCausalLM', { hidden_act: 'gelu' })).toMatchObject({
      headDim: 256,
      tieWordEmbeddings: true,
      activation: 'geluTanh',
    });
  });

  it('SmolLM3: every fourth layer without RoPE, or those of the list', () => {
    expect(read('SmolLM3ForCausalLM')).toMatchObject({
      layersWithoutRope: [false, false, false, true],
      tieWordEmbeddings: true,
      slidingWindow: null,
      rope: { theta: 2_000_000 },
    });
    expect(read('SmolLM3ForCausalLM', { no_rope_layers: [0, 1, 1, 0, 1] }).layersWithoutRope).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });

  it('OLMo 3: a window in three of four layers, whose RoPE is not scaled', () => {
    const rope_scaling = { rope_type: 'yarn', factor: 8, original_max_position_embeddings: 128 };
    expect(read('Olmo3ForCausalLM', { rope_theta: 500_000, rope_scaling, sliding_window: 64 })).toMatchObject(
      {
        layerWindows: [64, 64, 64, null],
        localRopeTheta: 500_000,
        rope: { theta: 500_000, scaling: { type: 'yarn' } },
      },
    );
  });

  it('EXAONE 4: layers without a window have no RoPE, unless all are such', () => {
    expect(read('Exaone4ForCausalLM', { sliding_window: 64 })).toMatchObject({
      layerWindows: [64, 64, 64, null],
      layersWithoutRope: [false, false, false, true],
    });
    const full = read('Exaone4ForCausalLM', { sliding_window: null, sliding_window_pattern: null });
    expect(full.layersWithoutRope).toBeUndefined();
    const types = ['full_attention', ...Array(3).fill('sliding_attention')];
    const typed = { sliding_window: 64, sliding_window_pattern: 'LLLG', layer_types: types };
    expect(read('Exaone4ForCausalLM', typed).layersWithoutRope).toEqual([true, false, false, false]);
    expect(() => read('Exaone4ForCausalLM', { sliding_window: 64, sliding_window_pattern: 'LLLG' })).toThrow(
      /sliding_window_pattern should be a number, or layer_types there/,
    );
  });

  it('Granite: factors, and none where the config says nothing', () => {
    const factors = { embedding_multiplier: 12, residual_multiplier: 0.22, attention_multiplier: 0.015625 };
    expect(read('GraniteForCausalLM', { ...factors, logits_scaling: 8 })).toMatchObject({
      embeddingScale: 12,
      residualScale: 0.22,
      attentionScale: 0.015625,
      logitScale: 0.125,
    });
    expect(read('GraniteForCausalLM')).toMatchObject({ residualScale: 1, attentionScale: 1, logitScale: 1 });
  });

  it("Cohere: LayerNorm's epsilon and a factor on logits; in Cohere 2 layers without a window have no RoPE", () => {
    expect(read('CohereForCausalLM', { layer_norm_eps: 1e-4 })).toMatchObject({
      rmsNormEpsilon: 1e-4,
      logitScale: 0.0625,
      tieWordEmbeddings: true,
      rope: { theta: 500_000 },
    });
    expect(read('Cohere2ForCausalLM', { sliding_window: 64 })).toMatchObject({
      layerWindows: [64, 64, 64, null],
      layersWithoutRope: [false, false, false, true],
    });
  });

  it('GLM-4: biases of queries, keys and values, and half of each head turns', () => {
    expect(read('Glm4ForCausalLM')).toMatchObject({
      attentionBias: true,
      headDim: 128,
      rope: { rotaryDim: 128, turnedDim: 64 },
    });
    expect(read('GlmForCausalLM', { partial_rotary_factor: 1 }).rope.turnedDim).toBeUndefined();
  });

  it('Ministral 3: the context ends where queries would be scaled by position', () => {
    const long = { max_position_embeddings: 262144 };
    expect(read('Ministral3ForCausalLM', long)).toMatchObject({
      maxPositions: 16384,
      rope: { theta: 1e6, scaling: { type: 'yarn', factor: 16 } },
    });
    const plain = { rope_parameters: { rope_type: 'default', rope_theta: 1e6 } };
    expect(read('Ministral3ForCausalLM', { ...long, ...plain }).maxPositions).toBe(262144);
  });

  it('Seed-OSS and ERNIE 4.5: biases by their own fields', () => {
    expect(read('SeedOssForCausalLM')).toMatchObject({ attentionBias: true, attentionOutputBias: false });
    expect(read('Ernie4_5ForCausalLM', { use_bias: true })).toMatchObject({
      attentionBias: true,
      mlpBias: true,
      rope: { theta: 500_000 },
    });
  });

  it('Command R+ norms each head, Nemotron turns half of it, and Hunyuan has a longer base by its alpha', () => {
    expect(read('CohereForCausalLM', { use_qk_norm: true }).ownHeadNorms).toBe(true);
    expect(read('CohereForCausalLM').ownHeadNorms).toBeUndefined();
    expect(read('NemotronForCausalLM', { head_dim: 16 })).toMatchObject({
      activation: 'reluSquared',
      rope: { rotaryDim: 8 },
    });
    const scaled = { head_dim: 18, rope_scaling: { type: 'dynamic', alpha: 16, factor: 1 } };
    const { rope } = read('HunYuanDenseV1ForCausalLM', scaled);
    expect(rope).toMatchObject({ rotaryDim: 18, scaling: { type: 'none' } });
    expect(rope.theta).toBeCloseTo(10_000 * 16 ** (18 / 16), 6);
  });

  it('MiniCPM: factors by depth and width, and a context that ends where attention becomes sparse', () => {
    const factors = {
      scale_emb: 12,
      scale_depth: 1.4,
      dim_model_base: 16,
      num_hidden_layers: 4,
      hidden_size: 64,
    };
    const config = read('MiniCPMForCausalLM', { ...factors, sparse_config: { dense_len: 100 } });
    expect(config).toMatchObject({
      embeddingScale: 12,
      residualScale: 0.7,
      logitScale: 0.25,
      maxPositions: 100,
    });
    expect(config.tieWordEmbeddings).toBe(true);
  });

  it('GPT-2: four times the width inside, tied, gelu_new', () => {
    expect(read('GPT2LMHeadModel')).toMatchObject({
      intermediateSize: 256,
      activation: 'geluTanh',
      tieWordEmbeddings: true,
      maxPositions: 128,
      rmsNormEpsilon: 1e-5,
      rope: { rotaryDim: 0 },
    });
    expect(read('GPT2LMHeadModel', { n_inner: 99 }).intermediateSize).toBe(99);
  });
});

describe('the tensors of a folder', () => {
  const tensor = (name: string) => ({
    name,
    type: 'F32',
    shape: [2, 6],
    file: 'f',
    offset: 0,
    byteLength: 48,
  });
  const namesOf = (architecture: string, names: string[]) =>
    namedTensors(names.map(tensor), { ...read('LlamaForCausalLM'), architecture });

  it("of GPT-2 are the same with and without the name of the model in front, and its layers' matrices are turned", () => {
    const names = ['wte.weight', 'h.0.attn.c_attn.weight', 'h.0.attn.c_attn.bias', 'h.11.mlp.c_fc.weight'];
    const plain = namesOf('gpt2', names);
    const prefixed = namesOf(
      'gpt2',
      names.map((name) => `transformer.${name}`),
    );
    expect([...prefixed.keys()]).toEqual(names);
    expect([...plain.keys()]).toEqual(names);
    for (const tensors of [plain, prefixed])
      expect([...tensors.values()].map(({ transposed }) => transposed === true)).toEqual([
        false,
        true,
        false,
        true,
      ]);
  });

  it('of Gemma hold norms less 1, of others as they are', () => {
    const names = [
      'model.norm.weight',
      'model.layers.0.self_attn.q_norm.weight',
      'model.embed_tokens.weight',
    ];
    const addends = (architecture: string) =>
      [...namesOf(architecture, names).values()].map(({ addend }) => addend ?? 0);
    expect(addends('gemma2')).toEqual([1, 1, 0]);
    expect(addends('gemma3')).toEqual([1, 1, 0]);
    expect(addends('qwen3')).toEqual([0, 0, 0]);
  });
});

describe('what would change the answer and is not supported is refused by its name', () => {
  it.each<[string, object, RegExp]>([
    ['Qwen2ForCausalLM', { use_mrope: true }, /use_mrope should be false/],
    ['Qwen2ForCausalLM', { rope_scaling: { type: 'mrope' } }, /type should be one of default, linear/],
    [
      'Qwen2ForCausalLM',
      { layer_types: ['full_attention'] },
      /layer_types should be 4 times one of full_attention/,
    ],
    [
      'Qwen3ForCausalLM',
      { layer_types: Array(4).fill('chunked_attention') },
      /layer_types should be 4 times/,
    ],
    ['Qwen3ForCausalLM', { use_sliding_window: 'yes' }, /use_sliding_window should be true or false/],
    [
      'Phi3ForCausalLM',
      { rope_scaling: { type: 'yarn', factor: 4 } },
      /rope_scaling should be absent or of the type longrope/,
    ],
    [
      'Phi3ForCausalLM',
      { rope_scaling: { type: 'su', short_factor: [1], long_factor: [1] } },
      /short_factor should be an array of 8/,
    ],
    [
      'Gemma2ForCausalLM',
      { use_bidirectional_attention: true },
      /use_bidirectional_attention should be false/,
    ],
    [
      'Gemma2ForCausalLM',
      { attn_logit_softcapping: -1 },
      /attn_logit_softcapping should be a number greater than 0/,
    ],
    [
      'Gemma2ForCausalLM',
      { query_pre_attn_scalar: 0 },
      /query_pre_attn_scalar should be a number greater than 0/,
    ],
    ['Gemma2ForCausalLM', { hidden_activation: 'relu6' }, /hidden_activation should be one of silu/],
    [
      'Gemma3ForCausalLM',
      { attn_logit_softcapping: 50 },
      /attn_logit_softcapping should be absent: Gemma 3 caps no/,
    ],
    [
      'Gemma3ForCausalLM',
      { rope_parameters: { rope_type: 'default' } },
      /rope_parameters should be those of full_attention/,
    ],
    [
      'Gemma3ForCausalLM',
      { rope_parameters: { sliding_attention: { rope_type: 'linear', factor: 2 } } },
      /rope_parameters should be those of full_attention and, without scaling, of sliding_attention/,
    ],
    [
      'GPT2LMHeadModel',
      { scale_attn_by_inverse_layer_idx: true },
      /scale_attn_by_inverse_layer_idx should be false/,
    ],
    [
      'HunYuanDenseV1ForCausalLM',
      { rope_scaling: { type: 'dynamic', alpha: 0.5 } },
      /RoPE: alpha should be a number from 1 to 1000000, found 0\.5/,
    ],
    [
      'MiniCPMForCausalLM',
      { sparse_config: { topk: 64 } },
      /sparse_config should be absent, or one with a dense_len/,
    ],
    [
      'GraniteForCausalLM',
      { residual_multiplier: 0 },
      /residual_multiplier should be a number greater than 0/,
    ],
    [
      'SmolLM3ForCausalLM',
      { no_rope_layers: [1] },
      /no_rope_layers should be a list of 0 and 1 for each of 4/,
    ],
    ['GPT2LMHeadModel', { scale_attn_weights: false }, /scale_attn_weights should be true/],
    ['GPT2LMHeadModel', { add_cross_attention: true }, /add_cross_attention should be false/],
    ['GPT2LMHeadModel', { activation_function: 'relu' }, /activation_function should be one of silu/],
    ['GPT2LMHeadModel', { n_head: 5 }, /n_embd should be a multiple of the 5 attention heads/],
  ])('%s with %o', (name, changes, message) => {
    expect(() => read(name, changes)).toThrow(message);
  });
});
