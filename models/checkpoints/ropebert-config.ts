import { dirname } from 'node:path';
import type { RopeConfig } from '../../network/rope.js';
import type { EncoderHead } from '../encoder-config.js';
import type { ModelConfig } from '../model-config.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import { ACTIVATIONS, checkHeads, tokenId } from './config-values.js';
import { embeddingHead, labelledHead } from './encoder-heads.js';
import { isObject } from './file-reading.js';
import { rowsOf } from './head-tensors.js';
import type { RawTensor } from './raw-tensor.js';
import { ropeOfHuggingFace } from './rope-config.js';
import { readSentenceTransformers, type SentenceTransformers } from './sentence-transformers.js';

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
  refuseUnsupported(config);
  const hiddenSize = config.integer(key('hidden_size'), 1, LIMITS.width);
  const numHeads = config.integer(key('num_attention_heads'), 1, LIMITS.heads);
  if (hiddenSize % numHeads !== 0) {
    throw config.error(key('hidden_size'), `a multiple of the ${numHeads} attention heads`);
  }
  const headDim = hiddenSize / numHeads;
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
    numLayers: config.integer(key('num_hidden_layers'), 1, LIMITS.layers),
    numHeads,
    numKvHeads: numHeads,
    headDim,
    rmsNormEpsilon: config.positive(key('layer_norm_eps'), 1e-12),
    activation: activationOf(config, isPublished, isNomic ? 'silu' : 'gelu'),
    attentionBias: isNomic ? config.boolean('qkv_proj_bias', false) : true,
    mlpBias: !isNomic,
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
      head: headOf(config, name, sentences, hiddenSize),
    },
  };
}

/** Refuses settings that would be computed wrongly, without an error, if they were ignored. */
function refuseUnsupported(config: ConfigFields): void {
  if ((config.raw('moe_every_n_layers') ?? 0) !== 0)
    throw config.error('moe_every_n_layers', '0: an encoder with experts is not supported');
  for (const key of ['prenorm', 'use_rms_norm', 'causal', 'rotary_emb_interleaved', 'logn_attention_scale'])
    if (config.boolean(key, false)) throw config.error(key, 'false');
  for (const key of ['mlp_fc1_bias', 'mlp_fc2_bias'])
    if (config.boolean(key, false)) throw config.error(key, 'false');
  for (const key of ['rotary_emb_scale_base', 'rotary_scaling_factor', 'quantization_config'])
    if (config.raw(key) !== undefined) throw config.error(key, 'absent');
  const usual = { rotary_emb_fraction: 1, position_embedding_type: 'rope', layer_norm_type: 'layer_norm' };
  for (const [key, value] of Object.entries(usual))
    if ((config.raw(key) ?? value) !== value) throw config.error(key, String(value));
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

function headOf(
  config: ConfigFields,
  name: string,
  sentences: SentenceTransformers,
  hiddenSize: number,
): EncoderHead {
  if (!name.endsWith('ForSequenceClassification')) return embeddingHead(config, sentences, hiddenSize);
  const dense = { tensors: ['pooler.dense'], width: hiddenSize, biased: true, activation: 'tanh' } as const;
  const out = { tensor: 'classifier', biased: true };
  return labelledHead(config, sentences, { pooling: 'cls', layers: [dense], out });
}

/** Names of tensors as they are published, by those of the network: nomic-embed's, then GTE's. */
const NAMES: readonly (readonly [own: RegExp, network: string])[] = [
  [/^emb_ln\./, 'embeddings.LayerNorm.'],
  [/^encoder\.layers?\./, 'layers.'],
  [/\.attn\.Wqkv\./, '.self_attn.qkv_proj.'],
  [/\.attn\.out_proj\./, '.self_attn.o_proj.'],
  [/\.mlp\.fc11\./, '.mlp.up_proj.'],
  [/\.mlp\.fc12\./, '.mlp.gate_proj.'],
  [/\.mlp\.fc2\./, '.mlp.down_proj.'],
  [/\.norm1\./, '.post_attention_layernorm.'],
  [/\.norm2\./, '.post_mlp_layernorm.'],
  [/\.attention\.(qkv|o)_proj\./, '.self_attn.$1_proj.'],
  [/\.attn_ln\./, '.post_attention_layernorm.'],
  [/\.mlp_ln\./, '.post_mlp_layernorm.'],
];

/** A tensor under the network's name; GTE's MLP has one for what the gate multiplies and the gate, in this order. */
export function ropeBertTensors(name: string, tensor: RawTensor): [string, RawTensor][] {
  const own = NAMES.reduce((text, [pattern, network]) => text.replace(pattern, network), name);
  const [, mlp] = /^(layers\.\d+\.mlp\.)up_gate_proj\.weight$/.exec(own) ?? [];
  if (mlp === undefined) return [[own, tensor]];
  const half = Math.floor((tensor.shape[0] ?? 0) / 2);
  return ['up_proj', 'gate_proj'].map((part, i) => [`${mlp}${part}.weight`, rowsOf(tensor, i * half, half)]);
}
