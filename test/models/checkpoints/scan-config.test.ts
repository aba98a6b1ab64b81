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
const [MAMBA, FALCON, NEMOTRON, GRANITE] = [
  'Mamba2ForCausalLM',
  'FalconH1ForCausalLM',
  'NemotronHForCausalLM',
  'GraniteMoeHybridForCausalLM',
] as const;
/** What each needs besides the dimensions: widths that fit them. */
const SMALL: Readonly<Record<string, object>> = {
  [MAMBA]: { num_heads: 16, head_dim: 8 },
  [FALCON]: { mamba_d_ssm: 96, mamba_n_heads: 8 },
  [NEMOTRON]: { hybrid_override_pattern: 'M*-M', mamba_num_heads: 8 },
  [GRANITE]: { mamba_n_heads: 16, num_local_experts: 0 },
};

/** A layer of experts in place of an MLP. */
const EXPERTS = { hybrid_override_pattern: 'M*EM', n_shared_experts: 1, moe_intermediate_size: 24 };

const read = (name: string, changes: object = {}) => {
  const json = { architectures: [name], ...DIMENSIONS, ...SMALL[name], ...changes };
  return configOfHuggingFace('config.json', json, null);
};

describe('a config.json of layers with scans that says little means what transformers takes', () => {
  it('Mamba2: no layer attends, and nothing limits the context', () => {
    const { max_position_embeddings: _, ...without } = DIMENSIONS;
    const json = { architectures: [MAMBA], ...without, ...SMALL[MAMBA] };
    expect(configOfHuggingFace('config.json', json, null)).toMatchObject({
      architecture: 'mamba2',
      attendingLayers: [false, false, false, false],
      maxPositions: 2 ** 20,
      scan: {
        heads: 16,
        headDim: 8,
        groups: 8,
        stateDim: 128,
        norm: 'behindGate',
        leastStep: 0,
        mostStep: null,
      },
      shortConv: { taps: 4, biased: true },
      tieWordEmbeddings: false,
    });
    expect(read(MAMBA).maxPositions).toBe(512);
  });

  it('Falcon-H1: all layers attend and scan, with factors of 1', () => {
    expect(read(FALCON)).toMatchObject({
      attendingLayers: [true, true, true, true],
      scan: { heads: 8, headDim: 12, groups: 1, stateDim: 256, norm: 'none' },
      attentionScale: 1 / 4,
      multipliers: { attentionOut: 1, scanIn: [1, 1, 1, 1, 1], scanOut: 1, mlpGate: 1, mlpDown: 1 },
    });
    const factors = { key_multiplier: 0.5, attention_in_multiplier: 3, attention_out_multiplier: 2 };
    const changed = read(FALCON, { ...factors, ssm_in_multiplier: 2, ssm_multipliers: [1, 2, 3, 4, 5] });
    expect(changed).toMatchObject({
      attentionScale: (0.5 * 9) / 4,
      multipliers: { attentionOut: 6, scanIn: [2, 4, 6, 8, 10] },
    });
    expect(read(FALCON, { mamba_rms_norm: true }).scan!.norm).toBe('beforeGate');
    const behind = { mamba_rms_norm: true, mamba_norm_before_gate: false };
    expect(read(FALCON, behind).scan!.norm).toBe('behindGate');
    // null: as many as the model is wide, times 2.
    expect(read(FALCON, { mamba_d_ssm: null }).scan!.headDim).toBe(16);
  });

  it('Nemotron-H: a pattern, or a list by either name, without RoPE', () => {
    const expected = {
      attendingLayers: [false, true, false, false],
      mlpLayers: [false, false, true, false],
      layersWithoutRope: [true, true, true, true],
      activation: 'reluSquared',
      scan: { heads: 8, headDim: 64, groups: 8, stateDim: 128 },
      headDim: 128,
    };
    expect(read(NEMOTRON)).toMatchObject(expected);
    const lists = [
      ['mamba', 'attention', 'mlp', 'mamba'],
      ['linear_attention', 'full_attention', 'mlp', 'linear_attention'],
    ];
    for (const layers_block_type of lists)
      expect(read(NEMOTRON, { hybrid_override_pattern: null, layers_block_type })).toMatchObject(expected);
    expect(read(NEMOTRON, { attention_head_dim: 16 }).headDim).toBe(16);
    const mixed = read(NEMOTRON, { ...EXPERTS, n_group: 2, routed_scaling_factor: 2.5 });
    expect(mixed).toMatchObject({
      mlpLayers: [false, false, false, false],
      experts: { count: 8, used: 2, width: 24, sharedWidth: 7688, layers: [false, false, true, false] },
    });
    expect(mixed.experts).toMatchObject({
      scoring: 'sigmoid',
      choiceBias: true,
      factor: 2.5,
      normalize: true,
    });
    expect(mixed.experts!.groups).toEqual({ count: 2, used: 1, top: 2 });
    // What transformers writes of experts that no layer has.
    expect(read(NEMOTRON, { n_routed_experts: 8, n_shared_experts: 1 })).toMatchObject(expected);
  });

  it('Granite 4: no layer attends without a list; experts are as many as it says', () => {
    expect(read(GRANITE)).toMatchObject({
      attendingLayers: [false, false, false, false],
      scan: { heads: 16, headDim: 8, groups: 1, stateDim: 256, norm: 'behindGate' },
      intermediateSize: 1024,
    });
    expect(read(GRANITE)).not.toHaveProperty('experts');
    const layer_types = ['mamba', 'attention', 'linear_attention', 'full_attention'];
    const mixed = read(GRANITE, { layer_types, num_local_experts: 6, shared_intermediate_size: 40 });
    expect(mixed).toMatchObject({
      attendingLayers: [false, true, false, true],
      experts: { count: 6, used: 2, width: 96, normalize: true },
      intermediateSize: 40,
    });
    expect(read(GRANITE, { layer_types: Array(4).fill('attention') })).not.toHaveProperty('attendingLayers');
  });

  it('steps are limited where it says so, with a number that JSON has no word for by either way to write it', () => {
    const limits = (time_step_limit: unknown) => {
      const { leastStep, mostStep } = read(MAMBA, { time_step_limit }).scan!;
      return [leastStep, mostStep];
    };
    expect(limits([0.01, 2])).toEqual([0.01, 2]);
    expect(limits([0, Number.POSITIVE_INFINITY])).toEqual([0, null]);
    expect(limits([0.5, { __float__: 'Infinity' }])).toEqual([0.5, null]);
    expect(limits(null)).toEqual([0, null]);
  });
});

describe('what a config.json of layers with scans gets wrong is one sentence', () => {
  it.each<[string, object, RegExp]>([
    [
      MAMBA,
      { num_heads: 15 },
      /num_heads should be a number of heads that are 128 wide together, found 15\.$/,
    ],
    [MAMBA, { head_dim: 1025 }, /head_dim should be a whole number from 1 to 1024, found 1025\.$/],
    [MAMBA, { n_groups: 3 }, /n_groups should be a divisor of the 16 heads, found 3\.$/],
    [MAMBA, { n_groups: 65 }, /n_groups should be a whole number from 1 to 64, found 65\.$/],
    [MAMBA, { state_size: 0 }, /state_size should be a whole number from 1 to 1024, found 0\.$/],
    [MAMBA, { conv_kernel: 1 }, /conv_kernel should be a whole number from 2 to 64, found 1\.$/],
    [MAMBA, { hidden_act: 'gelu' }, /hidden_act should be silu, found "gelu"\.$/],
    [MAMBA, { use_bias: 'no' }, /use_bias should be true or false/],
    [
      MAMBA,
      { time_step_limit: [0] },
      /time_step_limit should be two numbers of at least 0, the greater one last/,
    ],
    [MAMBA, { time_step_limit: [2, 1] }, /time_step_limit should be two numbers/],
    [MAMBA, { time_step_limit: [-1, 1] }, /time_step_limit should be two numbers/],
    [MAMBA, { time_step_limit: [null, 1] }, /time_step_limit should be two numbers/],
    [MAMBA, { time_step_limit: [0, { __float__: 'NaN' }] }, /time_step_limit should be two numbers/],
    [MAMBA, { architectures: ['Mamba2Model'] }, /architectures should be Mamba2ForCausalLM/],
    [FALCON, { mamba_n_heads: 7 }, /mamba_n_heads should be a number of heads that are 96 wide together/],
    [FALCON, { mamba_d_head: 13 }, /mamba_n_heads should be a number of heads that are 96 wide together/],
    [FALCON, { mlp_bias: true }, /mlp_bias should be false: biases together with factors are not supported/],
    [FALCON, { projectors_bias: true }, /projectors_bias should be false: biases together with factors/],
    [FALCON, { mlp_multipliers: [1] }, /mlp_multipliers should be an array of 2 numbers greater than 0/],
    [FALCON, { ssm_multipliers: [1, 1, null, 1, 1] }, /ssm_multipliers should be an array of 5 numbers/],
    [FALCON, { key_multiplier: 0 }, /key_multiplier should be a number greater than 0/],
    [
      NEMOTRON,
      { hybrid_override_pattern: 'M*-' },
      /hybrid_override_pattern should be 4 layers, each of M \(a scan\), \* \(attention\), - \(an MLP\) or E \(experts\), found "M\*-"\.$/,
    ],
    [NEMOTRON, { hybrid_override_pattern: 'M*-X' }, /hybrid_override_pattern should be 4 layers/],
    [
      NEMOTRON,
      { hybrid_override_pattern: null },
      /hybrid_override_pattern should be 4 layers.* found nothing/,
    ],
    [NEMOTRON, { ...EXPERTS, n_shared_experts: 2 }, /n_shared_experts should be 1: all tokens go to one MLP/],
    [NEMOTRON, { ...EXPERTS, moe_latent_size: 64 }, /moe_latent_size should be absent: experts of a width/],
    [
      NEMOTRON,
      { ...EXPERTS, n_group: 5 },
      /n_group should be a number that parts the 8 experts into equal groups/,
    ],
    [
      NEMOTRON,
      { ...EXPERTS, n_group: 2, topk_group: 1, num_experts_per_tok: 5 },
      /num_experts_per_tok should be .* from 1 to 4/,
    ],
    [NEMOTRON, { mamba_hidden_act: 'relu' }, /mamba_hidden_act should be silu/],
    [NEMOTRON, { sliding_window: 64 }, /sliding_window should be absent/],
    [NEMOTRON, { mamba_num_heads: 9 }, /n_groups should be a divisor of the 9 heads/],
    [
      NEMOTRON,
      { mamba_num_heads: 4096, mamba_head_dim: 1024 },
      /mamba_num_heads should be a number of heads that are at most/,
    ],
    [
      GRANITE,
      { layer_types: ['mamba'] },
      /layer_types should be 4 times one of attention, full_attention, mamba/,
    ],
    [GRANITE, { layer_types: Array(4).fill('conv') }, /layer_types should be 4 times one of/],
    [GRANITE, { mamba_n_heads: 12 }, /mamba_n_heads should be a number of heads that are 128 wide together/],
    [GRANITE, { num_local_experts: -1 }, /num_local_experts should be a whole number/],
    [
      GRANITE,
      { num_local_experts: 4, num_experts_per_tok: 5 },
      /num_experts_per_tok should be a whole number from 1 to 4/,
    ],
  ])('%s %o', (name, changes, message) => {
    expect(() => read(name, changes)).toThrow(message);
  });
});

describe('tensors of layers with scans', () => {
  const tensors = (name: string, tensor: string, shape: number[], changes: object = {}) => {
    const byteLength = 4 * shape.reduce((product, one) => product * one, 1);
    const raw = { name: tensor, file: 'model.safetensors', offset: 64, type: 'F32', shape, byteLength };
    return namedTensors([raw] as unknown as Parameters<typeof namedTensors>[0], read(name, changes));
  };

  it('of Mamba2 and Nemotron-H have the names of other decoders', () => {
    const nameOf = (name: string, tensor: string, shape = [64]) => [...tensors(name, tensor, shape).keys()];
    for (const prefix of ['backbone', 'model.backbone']) {
      expect(nameOf(MAMBA, `${prefix}.embedding.weight`)).toEqual(['model.embed_tokens.weight']);
      expect(nameOf(MAMBA, `${prefix}.norm_f.weight`)).toEqual(['model.norm.weight']);
      expect(nameOf(MAMBA, `${prefix}.layers.2.norm.weight`)).toEqual([
        'model.layers.2.input_layernorm.weight',
      ]);
      expect(nameOf(MAMBA, `${prefix}.layers.2.mixer.A_log`)).toEqual(['model.layers.2.mamba.A_log']);
    }
    const names = ['q_proj', 'up_proj', 'in_proj'].map(
      (one) => nameOf(NEMOTRON, `backbone.layers.1.mixer.${one}.weight`)[0],
    );
    const expected = ['self_attn.q_proj', 'mlp.up_proj', 'mamba.in_proj'];
    expect(names).toEqual(expected.map((one) => `model.layers.1.${one}.weight`));
  });

  it('of a norm are one for each group, and of one group as they are', () => {
    const found = tensors(MAMBA, 'backbone.layers.0.mixer.norm.weight', [128], { n_groups: 2 });
    const group = (index: number) => `model.layers.0.mamba.norm.${index}.weight`;
    expect([...found.keys()]).toEqual([group(0), group(1)]);
    expect(found.get(group(1))).toMatchObject({ shape: [64], offset: 64 + 256, byteLength: 256 });
    const own = 'model.layers.0.mamba.norm.weight';
    expect(
      tensors(MAMBA, 'backbone.layers.0.mixer.norm.weight', [128], { n_groups: 1 }).get(own)!.shape,
    ).toEqual([128]);
  });

  it("of Granite's MLP and experts are slices, by the names of transformers 4 and 5", () => {
    const mixed = { num_local_experts: 3, shared_intermediate_size: 40 };
    const layer = 'model.layers.1';
    const shared = tensors(GRANITE, `${layer}.shared_mlp.input_linear.weight`, [80, 64], mixed);
    expect([...shared.keys()]).toEqual([`${layer}.shared_mlp.gate.weight`, `${layer}.shared_mlp.up.weight`]);
    expect(shared.get(`${layer}.shared_mlp.up.weight`)).toMatchObject({
      shape: [40, 64],
      offset: 64 + 40 * 64 * 4,
    });
    for (const name of ['input_linear.weight', 'experts.gate_up_proj']) {
      const found = tensors(GRANITE, `${layer}.block_sparse_moe.${name}`, [3, 192, 64], mixed);
      expect(found.size).toBe(6);
      const up = `${layer}.block_sparse_moe.experts.2.up_proj.weight`;
      expect(found.get(up)).toMatchObject({ shape: [96, 64], offset: 64 + 5 * 96 * 64 * 4 });
    }
    for (const name of ['router.layer.weight', 'router.weight'])
      expect([...tensors(GRANITE, `${layer}.block_sparse_moe.${name}`, [3, 64], mixed).keys()]).toEqual([
        `${layer}.block_sparse_moe.gate.weight`,
      ]);
  });

  it.each<[string, string, number[], number[]]>([
    [MAMBA, 'backbone.layers.0.mixer.norm.weight', [128], [64]],
    [MAMBA, 'backbone.layers.0.mixer.conv1d.weight', [2176, 1, 4], [2176, 1, 3]],
    [GRANITE, 'model.layers.0.shared_mlp.input_linear.weight', [2048, 64], [1024, 64]],
  ])('%s: %s is refused unless it has the shape %j', (name, tensor, expected, found) => {
    const both = `should have the shape [${expected.join(', ')}], found [${found.join(', ')}].`;
    expect(() => tensors(name, tensor, found)).toThrow(`model.safetensors: tensor ${tensor} ${both}`);
  });
});
