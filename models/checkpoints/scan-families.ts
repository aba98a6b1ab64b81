import type { ExpertsConfig, ModelConfig, Multipliers } from '../model-config.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import type { DecoderFamily } from './decoder-family.js';
import { type ExpertFields, expertsOfHuggingFace } from './experts-config.js';
import { graniteFields } from './more-families.js';
import { ropeOfHuggingFace } from './rope-config.js';
import { requireSilu, scanOf } from './scan-config.js';

/** Names that Granite 4 and Falcon-H1 have for the fields of scans. */
const MAMBA_FIELDS = {
  heads: ['mamba_n_heads', 128],
  headDim: ['mamba_d_head'],
  groups: ['mamba_n_groups', 1],
  stateDim: ['mamba_d_state', 256],
  taps: 'mamba_d_conv',
  convBias: 'mamba_conv_bias',
  inputBias: 'mamba_proj_bias',
} as const;

/** What attends, and what does not, by the names of transformers 4 and 5. */
const ATTENDS = ['attention', 'full_attention'];
const SCANS = ['mamba', 'linear_attention'];

const GRANITE_EXPERTS: ExpertFields = {
  count: ['num_local_experts'],
  usualCount: 8,
  usualUsed: 2,
  width: 'intermediate_size',
  normalize: 'always',
};

/** Granite 4, whose layers attend or have a scan; without a list of them none attends. */
const granite4: DecoderFamily['read'] = (config, dimensions) => {
  const { name, numLayers } = dimensions;
  const field = config.raw('layer_types') === undefined ? 'layers_block_type' : 'layer_types';
  const types = config.raw(field) ?? new Array<string>(numLayers).fill(SCANS[0]!);
  const known = [...ATTENDS, ...SCANS];
  if (!Array.isArray(types) || types.length !== numLayers || !types.every((type) => known.includes(type)))
    throw config.error(field, `${numLayers} times one of ${known.join(', ')}`);
  const attends = types.map((type) => ATTENDS.includes(type));
  const turns = config.raw('position_embedding_type') === 'rope';
  const hybrid = attends.includes(false);
  return {
    ...graniteFields(config, dimensions),
    mlpBias: false,
    intermediateSize: config.integer('shared_intermediate_size', 1, LIMITS.width, 1024),
    ...(!turns && { layersWithoutRope: new Array<boolean>(numLayers).fill(true) }),
    ...(hybrid && { attendingLayers: attends, ...graniteScan(config) }),
    ...(config.integer('num_local_experts', 0, LIMITS.experts, 8) > 0 && {
      experts: expertsOfHuggingFace(config, name, numLayers, GRANITE_EXPERTS),
    }),
  };
};

function graniteScan(config: ConfigFields): Pick<ModelConfig, 'scan' | 'shortConv'> {
  requireSilu(config, 'hidden_act');
  const expand = config.integer('mamba_expand', 1, LIMITS.width, 2);
  const fields = { ...MAMBA_FIELDS, outputBias: 'mamba_proj_bias' };
  const width = expand * config.integer('hidden_size', 1, LIMITS.width);
  return scanOf(config, fields, width, 'behindGate');
}

const falconH1: DecoderFamily['read'] = (config, { numLayers, headDim, maxPositions }) => {
  requireSilu(config, 'hidden_act');
  // Factors stand on what projections give, of which no published model has biases.
  for (const field of ['attention_bias', 'mlp_bias', 'mamba_proj_bias', 'projectors_bias'])
    if (config.boolean(field, false))
      throw config.error(field, 'false: biases together with factors are not supported');
  const expand = config.integer('mamba_expand', 1, LIMITS.width, 2);
  const expanded = expand * config.integer('hidden_size', 1, LIMITS.width);
  const width =
    config.has('mamba_d_ssm') && config.raw('mamba_d_ssm') === undefined
      ? expanded
      : config.integer('mamba_d_ssm', 1, LIMITS.width, 1024);
  const beforeGate = config.boolean('mamba_norm_before_gate', true) ? 'beforeGate' : 'behindGate';
  const norm = config.boolean('mamba_rms_norm', false) ? beforeGate : 'none';
  const attentionIn = config.positive('attention_in_multiplier', 1);
  return {
    slidingWindow: null,
    attendingLayers: new Array<boolean>(numLayers).fill(true),
    rope: ropeOfHuggingFace(config, headDim, maxPositions),
    ...scanOf(config, { ...MAMBA_FIELDS, outputBias: 'projectors_bias' }, width, norm),
    embeddingScale: config.positive('embedding_multiplier', 1),
    logitScale: config.positive('lm_head_multiplier', 1),
    // Queries and keys both have the factor on what attention reads.
    attentionScale: (config.positive('key_multiplier', 1) * attentionIn ** 2) / Math.sqrt(headDim),
    multipliers: multipliersOf(config, attentionIn),
  };
};

function multipliersOf(config: ConfigFields, attentionIn: number): Multipliers {
  const listOf = (field: string, length: number) =>
    config.raw(field) === undefined ? new Array<number>(length).fill(1) : config.positives(field, length);
  const scanIn = config.positive('ssm_in_multiplier', 1);
  const parts = listOf('ssm_multipliers', 5).map((factor) => factor * scanIn);
  const [mlpGate = 1, mlpDown = 1] = listOf('mlp_multipliers', 2);
  return {
    attentionOut: attentionIn * config.positive('attention_out_multiplier', 1),
    scanIn: parts as unknown as Multipliers['scanIn'],
    scanOut: config.positive('ssm_out_multiplier', 1),
    mlpGate,
    mlpDown,
  };
}

/** Letters of Nemotron-H's patterns, and the names of layers in its lists. */
const NEMOTRON_LAYERS: Readonly<Record<string, 'scan' | 'attention' | 'mlp' | 'experts'>> = {
  M: 'scan',
  '*': 'attention',
  '-': 'mlp',
  E: 'experts',
  mamba: 'scan',
  linear_attention: 'scan',
  attention: 'attention',
  full_attention: 'attention',
  mlp: 'mlp',
  moe: 'experts',
};

const NEMOTRON_EXPERTS: ExpertFields = {
  // transformers 5 writes the second name.
  count: ['n_routed_experts', 'num_local_experts'],
  usualCount: 8,
  usualUsed: 2,
  width: 'moe_intermediate_size',
  usualWidth: 7688,
  normalize: { usually: true },
  shared: { width: 'moe_shared_expert_intermediate_size', usually: 7688 },
  scoring: 'sigmoid',
  choiceBias: true,
  groups: { top: 2 },
  hasFactor: true,
  sumEpsilon: 1e-20,
  besides: ['n_shared_experts'],
};

function nemotronExperts(config: ConfigFields, name: string, kinds: readonly string[]): ExpertsConfig {
  if ((config.raw('n_shared_experts') ?? 1) !== 1)
    throw config.error('n_shared_experts', '1: all tokens go to one MLP besides the experts');
  if (config.raw('moe_latent_size') !== undefined)
    throw config.error('moe_latent_size', 'absent: experts of a width of their own are not supported');
  const experts = expertsOfHuggingFace(config, name, kinds.length, NEMOTRON_EXPERTS);
  return { ...experts, layers: kinds.map((kind) => kind === 'experts') };
}

/**
 * The kind of each layer, by a pattern or a list. transformers clamps the steps of a prompt's scans to time_step_min, and those of generated
 * tokens not; the kernels that the models were trained with, vLLM and llama.cpp do neither, and so does this.
 */
const nemotronH: DecoderFamily['read'] = (config, { name, numLayers, headDim: usualDim }) => {
  requireSilu(config, 'mamba_hidden_act');
  for (const field of ['attention_bias', 'sliding_window', 'num_nextn_predict_layers'])
    if (config.raw(field)) throw config.error(field, 'absent');
  const kinds = layersOfNemotron(config, numLayers);
  // The first configurations have another name for it.
  const headDim = config.integer('attention_head_dim', 2, LIMITS.heads, usualDim);
  return {
    slidingWindow: null,
    headDim,
    attendingLayers: kinds.map((kind) => kind === 'attention'),
    mlpLayers: kinds.map((kind) => kind === 'mlp'),
    ...(kinds.includes('experts') && { experts: nemotronExperts(config, name, kinds) }),
    ...withoutRope(numLayers, headDim),
    ...scanOf(
      config,
      {
        heads: ['mamba_num_heads', 128],
        headDim: ['mamba_head_dim', 64],
        groups: ['n_groups', 8],
        stateDim: ['ssm_state_size', 128],
        taps: 'conv_kernel',
        convBias: 'use_conv_bias',
        inputBias: 'use_bias',
        outputBias: 'use_bias',
      },
      undefined,
      'behindGate',
    ),
  };
};

/** What a model has whose layers turn no queries and keys. */
export function withoutRope(
  numLayers: number,
  headDim: number,
): Pick<ModelConfig, 'rope'> & Partial<ModelConfig> {
  return {
    layersWithoutRope: new Array<boolean>(numLayers).fill(true),
    rope: { theta: 10_000, rotaryDim: headDim, scaling: { type: 'none' } },
  };
}

function layersOfNemotron(config: ConfigFields, numLayers: number): string[] {
  const field = ['hybrid_override_pattern', 'layers_block_type', 'layer_types'].find(
    (one) => config.raw(one) !== undefined,
  );
  const given = field === undefined ? undefined : config.raw(field);
  const names = typeof given === 'string' ? [...given] : given;
  const kinds = Array.isArray(names)
    ? names.map((one) => (typeof one === 'string' ? NEMOTRON_LAYERS[one] : undefined))
    : [];
  if (kinds.length !== numLayers || kinds.includes(undefined))
    throw config.error(
      field ?? 'hybrid_override_pattern',
      `${numLayers} layers, each of M (a scan), * (attention), - (an MLP) or E (experts)`,
    );
  return kinds as string[];
}

/** Families of which layers have a selective scan, by ModelConfig.architecture. */
export const SCAN_FAMILIES: Readonly<Record<string, DecoderFamily>> = {
  granite4: { ownExperts: GRANITE_EXPERTS, read: granite4 },
  falconh1: { epsilon: ['rms_norm_eps', 1e-5], read: falconH1 },
  nemotronh: {
    headDim: 128,
    activation: ['mlp_hidden_act', 'relu2'],
    epsilon: ['layer_norm_epsilon', 1e-5],
    ownExperts: NEMOTRON_EXPERTS,
    read: nemotronH,
  },
};
