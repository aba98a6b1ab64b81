import { dirname } from 'node:path';
import type { RopeConfig } from '../../network/rope.js';
import type { ExpertsConfig, ModelConfig } from '../model-config.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import { ACTIVATIONS, checkHeads, tokenId, widthAndHeads } from './config-values.js';
import { embeddingHead, poolerHead } from './encoder-heads.js';
import { oneOfEach } from './expert-layers.js';
import { checkExperts } from './experts-config.js';
import { isObject } from './file-reading.js';
import { rowsOf } from './head-tensors.js';
import { type RawTensor, refuseShape } from './raw-tensor.js';
import { ropeOfHuggingFace } from './rope-config.js';
import { readSentenceTransformers } from './sentence-transformers.js';
import type { NamedTensor } from './tensor-layout.js';

/** Fields as nomic-embed was published, by the names that transformers has now. */
const PUBLISHED_KEYS: Readonly<Record<string, string>> = {
  hidden_size: 'n_embd',
  num_attention_heads: 'n_head',
  num_hidden_layers: 'n_layer',
  intermediate_size: 'n_inner',
  max_position_embeddings: 'n_positions',
  layer_norm_eps: 'layer_norm_epsilon',
};

/** Makes the ModelConfig of nomic-embed or GTE from config.json; `name` is its name of the architecture. */
export function configOfRopeBert(config: ConfigFields, name: string): ModelConfig {
  const isNomic = name.startsWith('NomicBert');
  const isPublished = isNomic && config.raw('n_embd') !== undefined;
  const key = (now: string) => (isPublished ? PUBLISHED_KEYS[now]! : now);
  const numLayers = config.integer(key('num_hidden_layers'), 1, LIMITS.layers);
  const experts = expertsOf(config, numLayers);
  refuseUnsupported(config, experts !== null);
  const { hiddenSize, numHeads, headDim } = widthAndHeads(config, key);
  checkHeads(config.where, numHeads, numHeads, headDim);
  const positions = config.integer(key('max_position_embeddings'), 1, LIMITS.positions);
  // Beyond these it would need another RoPE than its files have.
  const trained = config.integer('max_trained_positions', 1, LIMITS.positions, isNomic ? 2048 : positions);
  const room = Math.min(positions, trained);
  const sentences = readSentenceTransformers(dirname(config.where), hiddenSize);
  const types = config.integer('type_vocab_size', 0, LIMITS.vocabSize, isNomic ? 2 : 1);
  const vocabSize = config.integer('vocab_size', 1, LIMITS.vocabSize);
  return {
    architecture: 'ropebert',
    vocabSize,
    hiddenSize,
    intermediateSize: config.integer(key('intermediate_size'), 1, LIMITS.width),
    numLayers,
    numHeads,
    numKvHeads: numHeads,
    headDim,
    rmsNormEpsilon: config.positive(key('layer_norm_eps'), 1e-12),
    activation: experts ? 'gelu' : activationOf(config, isPublished, isNomic ? 'silu' : 'gelu'),
    attentionBias: isNomic ? config.boolean('qkv_proj_bias', false) : true,
    mlpBias: !isNomic || experts !== null,
    ...(experts && { experts }),
    tieWordEmbeddings: false,
    maxPositions: Math.min(room, sentences.maxTokens ?? room),
    slidingWindow: null,
    rope: ropeOf(config, headDim, positions, name),
    bosTokenId: null,
    eosTokenIds: [],
    padTokenId: tokenId(config.tokenIds('pad_token_id')[0], vocabSize),
    encoder: {
      bothWays: true,
      tokenTypes: Math.max(1, types),
      ...(types === 0 && { withoutTypes: true }),
      positionRows: 0,
      firstPosition: 0,
      head: name.endsWith('ForSequenceClassification')
        ? poolerHead(config, sentences, hiddenSize, 'tanh')
        : embeddingHead(config, sentences, hiddenSize),
    },
  };
}

/** Refuses settings that would be computed wrongly, without an error, if they were ignored. */
function refuseUnsupported(config: ConfigFields, hasExperts: boolean): void {
  for (const key of ['prenorm', 'use_rms_norm', 'causal', 'rotary_emb_interleaved', 'logn_attention_scale'])
    if (config.boolean(key, false)) throw config.error(key, 'false');
  for (const key of ['mlp_fc1_bias', 'mlp_fc2_bias']) {
    if (config.boolean(key, false) !== hasExperts)
      throw config.error(
        key,
        `${hasExperts}, as nomic-embed ${hasExperts ? 'with' : 'without'} experts has it`,
      );
  }
  for (const key of ['rotary_emb_scale_base', 'rotary_scaling_factor', 'quantization_config'])
    if (config.raw(key) !== undefined) throw config.error(key, 'absent');
  const usual = { rotary_emb_fraction: 1, position_embedding_type: 'rope', layer_norm_type: 'layer_norm' };
  for (const [key, value] of Object.entries(usual))
    if ((config.raw(key) ?? value) !== value) throw config.error(key, String(value));
}

/** The experts of nomic-embed v2, in each layer that follows one without; null: there are none. */
function expertsOf(config: ConfigFields, numLayers: number): ExpertsConfig | null {
  const every = config.integer('moe_every_n_layers', 0, LIMITS.layers, 0);
  if (every === 0) return null;
  const harmless = {
    activation_function: 'gelu',
    type_vocab_size: 1,
    moe_normalize_expert_weights: false,
    expert_choice_router: false,
    num_shared_experts: 0,
    ffn_div: 1,
    qkv_proj_bias: true,
  };
  for (const [key, value] of Object.entries(harmless)) {
    const isNeeded = key === 'activation_function' || key === 'type_vocab_size' || key === 'qkv_proj_bias';
    if ((config.raw(key) ?? (isNeeded ? undefined : value)) !== value) throw config.error(key, String(value));
  }
  if (every < 2) throw config.error('moe_every_n_layers', 'at least 2');
  const count = config.integer('num_experts', 1, LIMITS.experts);
  checkExperts(config.where, numLayers, count);
  return {
    count,
    used: config.integer('moe_top_k', 1, count),
    width: config.integer('n_inner', 1, LIMITS.width),
    normalize: false,
    layers: oneOfEach(numLayers, every),
  };
}

/** Activations of the gate, as nomic-embed's own code calls them. */
const GATES = new Map<unknown, ModelConfig['activation']>([
  ['swiglu', 'silu'],
  ['geglu', 'gelu'],
]);

function activationOf(config: ConfigFields, isPublished: boolean, usual: string): ModelConfig['activation'] {
  const [key, names] = isPublished ? ['activation_function', GATES] : ['hidden_act', ACTIVATIONS];
  const activation = names.get(config.raw(key) ?? (isPublished ? undefined : usual));
  if (!activation) throw config.error(key, `one of ${[...names.keys()].join(', ')}`);
  return activation;
}

function ropeOf(config: ConfigFields, headDim: number, positions: number, name: string): RopeConfig {
  const isNomic = name.startsWith('NomicBert');
  if (config.raw('rotary_emb_base') !== undefined) {
    const theta = config.positive('rotary_emb_base');
    return ropeOfHuggingFace(config, headDim, positions, { parameters: { rope_theta: theta } });
  }
  const scaling = config.raw('rope_scaling');
  if (isObject(scaling) && (scaling.type ?? scaling.rope_type) === 'ntk') {
    const { factor } = scaling;
    if (typeof factor !== 'number' || !(factor >= 1) || factor > 1e6 || (scaling.mixed_b ?? null) !== null)
      throw config.error('rope_scaling', 'of the type ntk, with a factor from 1 on and without mixed_b');
    const theta = config.positive('rope_theta', 10_000);
    const factors = Array.from({ length: headDim / 2 }, (_, i) => factor ** ((2 * i + 2) / headDim));
    return { theta, rotaryDim: headDim, scaling: { type: 'factors', factors } };
  }
  const theta = isNomic ? 1000 : name.startsWith('Gte') ? 160_000 : 10_000;
  return ropeOfHuggingFace(config, headDim, positions, { theta });
}

/** Names of tensors as they are published, by those of the network: nomic-embed's, then GTE's. */
const NAMES: readonly (readonly [own: RegExp, network: string])[] = [
  [/^emb_ln\./, 'embeddings.LayerNorm.'],
  [/^encoder\.layers?\./, 'layers.'],
  [/\.attn\.Wqkv\./, '.self_attn.qkv_proj.'],
  [/\.attn\.out_proj\./, '.self_attn.o_proj.'],
  [/\.mlp\.fc11?\./, '.mlp.up_proj.'],
  [/\.mlp\.fc12\./, '.mlp.gate_proj.'],
  [/\.mlp\.fc2\./, '.mlp.down_proj.'],
  [/\.norm1\./, '.post_attention_layernorm.'],
  [/\.norm2\./, '.post_mlp_layernorm.'],
  [/\.attention\.(qkv|o)_proj\./, '.self_attn.$1_proj.'],
  [/\.attn_ln\./, '.post_attention_layernorm.'],
  [/\.mlp_ln\./, '.post_mlp_layernorm.'],
];

/** A tensor under the network's name; GTE's MLP has one for what the gate multiplies and the gate, in this order. */
export function ropeBertTensors(
  name: string,
  tensor: RawTensor,
  { experts, hiddenSize }: ModelConfig,
): [string, NamedTensor][] {
  const own = NAMES.reduce((text, [pattern, network]) => text.replace(pattern, network), name);
  const [, ofExperts, part] = /^(layers\.\d+\.mlp\.experts\.)(mlp\.w1|mlp\.w2|bias)$/.exec(own) ?? [];
  if (ofExperts !== undefined && experts !== undefined)
    return expertTensors(ofExperts, part!, tensor, experts, hiddenSize);
  const [, mlp] = /^(layers\.\d+\.mlp\.)up_gate_proj\.weight$/.exec(own) ?? [];
  if (mlp === undefined) return [[own, tensor]];
  const half = Math.floor((tensor.shape[0] ?? 0) / 2);
  return ['up_proj', 'gate_proj'].map((part, i) => [`${mlp}${part}.weight`, rowsOf(tensor, i * half, half)]);
}

/**
 * Slices of the tensors that have all experts of a layer below each other, [experts * width, hiddenSize] both for the way up and for the
 * way down, which is stored turned; and the bias that they share, as a table of one row.
 */
function expertTensors(
  own: string,
  part: string,
  tensor: RawTensor,
  { count, width }: ExpertsConfig,
  hiddenSize: number,
): [string, NamedTensor][] {
  if (part === 'bias') {
    refuseShape(tensor, [hiddenSize]);
    return [[`${own}bias`, { ...tensor, shape: [1, hiddenSize] }]];
  }
  refuseShape(tensor, [count * width, hiddenSize]);
  const [name, turned] = part === 'mlp.w1' ? ['up_proj', {}] : ['down_proj', { transposed: true }];
  return Array.from({ length: count }, (_, expert) => [
    `${own}${expert}.${name}.weight`,
    { ...rowsOf(tensor, expert * width, width), ...turned },
  ]);
}
