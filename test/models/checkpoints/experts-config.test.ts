import { describe, expect, it } from 'vitest';
import { LIMITS } from '../../../models/checkpoints/config-fields.js';
import { configOfHuggingFace } from '../../../models/checkpoints/huggingface-config.js';

const DIMENSIONS = {
  vocab_size: 100,
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  max_position_embeddings: 512,
};
const [QWEN, MIXTRAL, GLM, LFM2, OLMOE, QWEN2, PHI] = [
  'Qwen3MoeForCausalLM',
  'MixtralForCausalLM',
  'Glm4MoeForCausalLM',
  'Lfm2MoeForCausalLM',
  'OlmoeForCausalLM',
  'Qwen2MoeForCausalLM',
  'PhimoeForCausalLM',
];
/** Of heads of 16. */
const LONGROPE = {
  type: 'longrope',
  short_factor: Array(8).fill(1),
  long_factor: Array(8).fill(2),
  short_mscale: 1.25,
  long_mscale: 1.25,
  original_max_position_embeddings: 128,
};

const read = (name: string, changes: object = {}) =>
  configOfHuggingFace('config.json', { architectures: [name], ...DIMENSIONS, ...changes }, null);

describe('a config.json of experts that says little means what transformers takes', () => {
  it('Qwen3: 8 of 128 experts of width 768, with shares of all', () => {
    expect(read(QWEN)).toMatchObject({
      architecture: 'qwen3moe',
      intermediateSize: 96,
      headDim: 16,
      slidingWindow: null,
      experts: { count: 128, used: 8, width: 768, normalize: false },
    });
  });

  it("Mixtral: 2 of 8 experts of the MLP's width, whose shares add up to 1, and a period of a million", () => {
    expect(read(MIXTRAL)).toMatchObject({
      architecture: 'mixtral',
      headDim: 16,
      rmsNormEpsilon: 1e-5,
      slidingWindow: null,
      rope: { theta: 1_000_000 },
      experts: { count: 8, used: 2, width: 96, normalize: true },
    });
  });
});

describe('families with other routing', () => {
  it('gpt-oss: scores and products with biases, gates that are clamped, and windows in every other layer', () => {
    const experts = {
      ...{ count: 128, used: 4, width: 96, normalize: true },
      ...{ biased: true, clamped: { alpha: 1.702, limit: 7 }, stacked: true },
    };
    const usual = read('GptOssForCausalLM');
    expect(usual).toMatchObject({
      architecture: 'gptoss',
      ...{ headDim: 64, rmsNormEpsilon: 1e-5, attentionBias: true, sinkLogits: true },
      ...{ slidingWindow: null, layerWindows: [128, null, 128, null] },
      rope: { theta: 150_000, scaling: { type: 'yarn', factor: 32, truncate: false } },
    });
    expect(usual.experts).toEqual(experts);
    const changes = { num_local_experts: 32, swiglu_limit: 5, swiglu_alpha: 1.5, sliding_window: null };
    expect(read('GptOssForCausalLM', changes)).toMatchObject({
      ...{ slidingWindow: null },
      experts: { count: 32, clamped: { alpha: 1.5, limit: 5 } },
    });
    expect(() => read(QWEN!, { swiglu_limit: 7 })).toThrow(
      /swiglu_limit should be absent: experts whose gates are clamped are not supported, found 7/,
    );
  });

  it('GLM-4.5: sigmoids with a bias of the choice, an MLP for all tokens, and a first layer without experts', () => {
    const experts = {
      count: 128,
      used: 8,
      width: 1408,
      normalize: true,
      scoring: 'sigmoid',
      choiceBias: true,
      sumEpsilon: 1e-20,
      sharedWidth: 1408,
      layers: [false, true, true, true],
    };
    expect(read(GLM!)).toMatchObject({ architecture: 'glm4moe', rope: { rotaryDim: 8 } });
    expect(read(GLM!).experts).toEqual(experts);
    expect(read(GLM!).headNorms).toBeUndefined();
    const changes = {
      use_qk_norm: true,
      n_group: 8,
      topk_group: 4,
      n_shared_experts: 2,
      first_k_dense_replace: 0,
    };
    const { experts: grouped, headNorms } = read(GLM!, { ...changes, routed_scaling_factor: 2.5 });
    expect(headNorms).toBe(true);
    const { layers: _, ...rest } = experts;
    const groups = { count: 8, used: 4, top: 2 };
    expect(grouped).toEqual({ ...rest, groups, factor: 2.5, sharedWidth: 2816 });
  });

  it('Phi-MoE: two experts by sparsemixer, and a factor on RoPE of its own', () => {
    const experts = { count: 16, used: 2, width: 96, normalize: false, scoring: 'sparsemixer', jitter: 0.01 };
    const usual = read(PHI!);
    expect(usual).toMatchObject({
      architecture: 'phimoe',
      rmsNormEpsilon: 1e-5,
      outputBias: false,
      slidingWindow: null,
      rope: { theta: 1_000_000, scaling: { type: 'none' } },
    });
    expect(usual.experts).toEqual(experts);
    const changes = {
      num_local_experts: 4,
      router_jitter_noise: 0,
      norm_topk_prob: true,
      attention_bias: true,
      lm_head_bias: true,
      sliding_window: 512,
      rope_theta: 10_000,
      rope_scaling: LONGROPE,
    };
    const given = read(PHI!, changes);
    expect(given).toMatchObject({
      ...{ attentionBias: true, outputBias: true, slidingWindow: 512 },
      rope: {
        theta: 10_000,
        scaling: { type: 'longrope', attentionFactor: 1.25, originalMaxPositions: 128 },
      },
    });
    expect(given.experts).toEqual({ ...experts, count: 4, jitter: 0 });
    expect(read('PhiMoEForCausalLM', changes)).toEqual(given);
  });

  it('LFM2: two layers without experts, and a bias where it says so', () => {
    const experts = { count: 32, used: 4, width: 1792, normalize: true, scoring: 'sigmoid' };
    const layers = [false, false, true, true];
    expect(read(LFM2!).experts).toEqual({ ...experts, choiceBias: true, sumEpsilon: 1e-6, layers });
    const { sumEpsilon: _, ...changed } = read(LFM2!, { norm_topk_prob: false, use_expert_bias: false })
      .experts!;
    expect(changed).toEqual({ ...experts, normalize: false, layers });
  });

  it('Qwen2 and OLMoE: shares of all', () => {
    const qwen = { count: 60, used: 4, width: 1408, normalize: false, sharedWidth: 5632 };
    expect(read(QWEN2!)).toMatchObject({ experts: qwen, attentionBias: true });
    expect(read(OLMOE!).experts).toEqual({ count: 64, used: 8, width: 96, normalize: false });
  });

  it.each([
    [{ decoder_sparse_step: 2 }, [false, true, false, true]],
    [{ decoder_sparse_step: 2, mlp_only_layers: [0, 1] }, [false, false, false, true]],
    [{ mlp_only_layers: [2] }, [true, true, false, true]],
    [{ mlp_only_layers: [], decoder_sparse_step: 1 }, undefined],
    [{ mlp_only_layers: null }, undefined],
  ])('some layers have one MLP: %j', (changes, layers) => {
    for (const name of [QWEN!, QWEN2!]) expect(read(name, changes).experts!.layers).toEqual(layers);
  });
});

describe('experts of config.json', () => {
  it('are read by the names of both', () => {
    const changes = { num_experts_per_tok: 3, moe_intermediate_size: 24, norm_topk_prob: true };
    const experts = { count: 16, used: 3, width: 24, normalize: true };
    expect(read(QWEN, { ...changes, num_experts: 16 }).experts).toEqual(experts);
    expect(read(QWEN, { ...changes, num_local_experts: 16 }).experts).toEqual(experts);
    expect(read(QWEN, { ...changes, num_local_experts: 16, num_experts: 16 }).experts).toEqual(experts);
    const mixtral = read(MIXTRAL, { num_local_experts: 4, num_experts_per_tok: 4 });
    expect(mixtral.experts).toEqual({ count: 4, used: 4, width: 96, normalize: true });
  });

  it('may have a window, the same in all layers', () => {
    const layer_types = Array(4).fill('sliding_attention');
    expect(read(MIXTRAL, { sliding_window: 32 }).slidingWindow).toBe(32);
    expect(read(MIXTRAL, { sliding_window: null }).slidingWindow).toBeNull();
    expect(read(QWEN, { sliding_window: 32, max_window_layers: 3 }).slidingWindow).toBeNull();
    const window = { use_sliding_window: true, sliding_window: 32, max_window_layers: 3, layer_types };
    expect(read(QWEN, window)).toMatchObject({ slidingWindow: 32 });
    expect(read(QWEN, window).layerWindows).toBeUndefined();
  });

  it('say nothing where all other ways to compute them are off', () => {
    const off = { n_shared_experts: 0, n_group: 1, routed_scaling_factor: 1, scoring_func: 'softmax' };
    expect(read(QWEN, { ...off, mlp_only_layers: [], decoder_sparse_step: 1 })).toEqual(read(QWEN));
    expect(read('LlamaForCausalLM', { num_experts: 0, num_local_experts: null }).experts).toBeUndefined();
  });

  it.each<[string, object, RegExp]>([
    [QWEN!, { num_experts: 0 }, /num_experts should be a whole number from 1 to 1024, found 0\.$/],
    [QWEN!, { num_experts: 1025 }, /num_experts should be a whole number from 1 to 1024, found 1025\.$/],
    [QWEN!, { num_experts: '8' }, /num_experts should be a whole number .* found "8"\.$/],
    [
      QWEN!,
      { num_experts: 8, num_local_experts: 9 },
      /num_local_experts should be num_experts, which is 8, found 9/,
    ],
    [
      QWEN!,
      { num_experts_per_tok: 129 },
      /num_experts_per_tok should be a whole number from 1 to 128, found 129/,
    ],
    [
      QWEN!,
      { num_experts_per_tok: 0 },
      /num_experts_per_tok should be a whole number from 1 to 128, found 0/,
    ],
    [QWEN!, { moe_intermediate_size: 0 }, /moe_intermediate_size should be a whole number from 1/],
    [QWEN!, { norm_topk_prob: 1 }, /norm_topk_prob should be true or false, found 1/],
    [
      QWEN!,
      { decoder_sparse_step: 0 },
      /decoder_sparse_step should be a whole number from 1 to \d+, found 0/,
    ],
    [QWEN!, { decoder_sparse_step: 5 }, /decoder_sparse_step should be at most the 4 layers: one has to/],
    [QWEN!, { mlp_only_layers: [4] }, /mlp_only_layers should be a list of layers from 0 to 3, found \[4\]/],
    [QWEN!, { mlp_only_layers: 3 }, /mlp_only_layers should be a list of layers from 0 to 3, found 3/],
    [
      QWEN!,
      { mlp_only_layers: [0, 1, 2, 3] },
      /mlp_only_layers should be a list that leaves at least one layer/,
    ],
    [
      QWEN!,
      { mlp_only_layers: [0], intermediate_size: undefined },
      /intermediate_size should be the width of the MLP of layers without experts, found nothing/,
    ],
    [MIXTRAL!, { decoder_sparse_step: 2 }, /decoder_sparse_step should be 1: layers with one MLP .* found 2/],
    [
      MIXTRAL!,
      { mlp_only_layers: [0] },
      /mlp_only_layers should be empty: layers with one MLP .* found \[0\]/,
    ],
    [MIXTRAL!, { num_dense_layers: 1 }, /num_dense_layers should be 0/],
    [
      GLM!,
      { n_group: 3 },
      /n_group should be a number that parts the 128 experts into equal groups of at least 2, found 3/,
    ],
    [
      GLM!,
      { n_group: 128 },
      /n_group should be a number that parts the 128 experts .* of at least 2, found 128/,
    ],
    [GLM!, { n_group: 257 }, /n_group should be a whole number from 1 to 256, found 257/],
    [GLM!, { n_group: 4, topk_group: 5 }, /topk_group should be a whole number from 1 to 4, found 5/],
    [
      GLM!,
      { n_group: 64, topk_group: 3 },
      /num_experts_per_tok should be a whole number from 1 to 6, found nothing/,
    ],
    [
      GLM!,
      { n_group: 64, topk_group: 3, num_experts_per_tok: 7 },
      /num_experts_per_tok should be a whole number from 1 to 6, found 7/,
    ],
    [GLM!, { routed_scaling_factor: 0 }, /routed_scaling_factor should be .*0/],
    [GLM!, { scoring_func: 'softmax' }, /scoring_func should be "sigmoid": shares of experts by another/],
    [
      GLM!,
      { first_k_dense_replace: 4 },
      /first_k_dense_replace should be a whole number from 0 to 3, found 4/,
    ],
    [GLM!, { n_shared_experts: 0 }, /n_shared_experts should be a whole number from 1/],
    [LFM2!, { num_dense_layers: 4 }, /num_dense_layers should be a whole number from 0 to 3, found 4/],
    [LFM2!, { use_expert_bias: 1 }, /use_expert_bias should be true or false, found 1/],
    [OLMOE!, { clip_qkv: 8 }, /clip_qkv should be absent: queries, keys and values that are clamped/],
    [
      QWEN2!,
      { use_sliding_window: true },
      /use_sliding_window should be false: windows in every other layer/,
    ],
    [QWEN!, { first_k_dense_replace: 1 }, /first_k_dense_replace should be 0/],
    [
      QWEN!,
      { shared_expert_intermediate_size: 64 },
      /shared_expert_intermediate_size should be absent: experts that all/,
    ],
    [QWEN!, { n_shared_experts: 1 }, /n_shared_experts should be absent/],
    [
      QWEN!,
      { n_routed_experts: 8 },
      /n_routed_experts should be absent: the experts of Qwen3MoeForCausalLM are num_experts/,
    ],
    [QWEN!, { n_group: 4 }, /n_group should be absent: groups of experts/],
    [QWEN!, { routed_scaling_factor: 2.5 }, /routed_scaling_factor should be absent or 1/],
    [QWEN!, { scoring_func: 'sigmoid' }, /scoring_func should be "softmax"/],
    [QWEN!, { use_mrope: true }, /use_mrope should be false/],
    [
      QWEN!,
      { layer_types: Array(4).fill('sliding_attention') },
      /layer_types should be full_attention for each layer/,
    ],
    [MIXTRAL!, { num_local_experts: 2000 }, /num_local_experts should be a whole number from 1 to 1024/],
    [
      MIXTRAL!,
      { num_experts_per_tok: 9 },
      /num_experts_per_tok should be a whole number from 1 to 8, found 9/,
    ],
    [MIXTRAL!, { intermediate_size: undefined }, /intermediate_size should be a whole number/],
    [
      MIXTRAL!,
      { sliding_window: 9, layer_types: ['full_attention'] },
      /layer_types should be sliding_attention for each/,
    ],
    [
      'LlamaForCausalLM',
      { num_local_experts: 8 },
      /num_local_experts should be absent: LlamaForCausalLM has no experts, found 8/,
    ],
    [
      'Qwen3ForCausalLM',
      { num_experts: 128 },
      /num_experts should be absent: Qwen3ForCausalLM has no experts/,
    ],
    [
      'Qwen2ForCausalLM',
      { n_routed_experts: 4 },
      /n_routed_experts should be absent: Qwen2ForCausalLM has no experts/,
    ],
    [
      'MistralForCausalLM',
      { n_shared_experts: 1 },
      /n_shared_experts should be absent: MistralForCausalLM has no/,
    ],
    [
      'GPT2LMHeadModel',
      { moe_num_experts: 4 },
      /moe_num_experts should be absent: GPT2LMHeadModel has no experts/,
    ],
    [PHI!, { num_experts_per_tok: 1 }, /num_experts_per_tok should be a whole number from 2 to 2, found 1/],
    [PHI!, { num_local_experts: 1 }, /num_local_experts should be a whole number from 2 to 1024, found 1/],
    [PHI!, { router_jitter_noise: -1 }, /router_jitter_noise should be a number greater than 0, found -1/],
    [PHI!, { router_jitter_noise: 1.5 }, /router_jitter_noise should be a number from 0 to 1, found 1\.5/],
    [PHI!, { lm_head_bias: 1 }, /lm_head_bias should be true or false, found 1/],
    [PHI!, { n_group: 4 }, /n_group should be absent: groups of experts/],
    [
      PHI!,
      { rope_scaling: { type: 'linear', factor: 2 } },
      /rope_scaling should be absent or of the type longrope/,
    ],
    [
      PHI!,
      { rope_scaling: { ...LONGROPE, short_mscale: undefined } },
      /rope scaling: short_mscale should be a number greater than 0, found nothing/,
    ],
    [
      PHI!,
      { rope_scaling: { ...LONGROPE, long_mscale: 1.5 } },
      /rope scaling: long_mscale should be short_mscale, which is 1\.25, found 1\.5/,
    ],
  ])('%s with %o is refused by name', (name, changes, message) => {
    expect(() => read(name, changes)).toThrow(message);
  });

  it('are bounded over all layers', () => {
    const layers = { num_hidden_layers: 64, num_experts: 1024 };
    expect(read(QWEN, layers).experts!.count * 64).toBe(LIMITS.allExperts);
    expect(() => read(QWEN, { ...layers, num_hidden_layers: 65 })).toThrow(
      'config.json: 65 layers of 1024 experts should have 65536 experts in all at most, found 66560.',
    );
  });
});
