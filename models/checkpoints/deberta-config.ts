import { dirname } from 'node:path';
import { MAX_DISTANCES } from '../../network/distance-buckets.js';
import type { Activation } from '../../network/plan.js';
import type { DisentangledPositions, EncoderConfig, EncoderHead } from '../encoder-config.js';
import type { ModelConfig } from '../model-config.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import { ACTIVATIONS, activationOf, checkHeads, tokenId, widthAndHeads } from './config-values.js';
import { embeddingHead, poolerHead } from './encoder-heads.js';
import { readSentenceTransformers, type SentenceTransformers } from './sentence-transformers.js';

/** Activations of the layers; the head may have tanh too. */
const LAYER_ACTIVATIONS = new Map([...ACTIVATIONS, ['relu', 'relu'] as const]);
const HEAD_ACTIVATIONS = new Map<unknown, Activation>([...LAYER_ACTIVATIONS, ['tanh', 'tanh']]);

/** Makes the ModelConfig of a DeBERTa of version 2 or 3 from config.json; `name` is its name of the architecture. */
export function configOfDeberta(config: ConfigFields, name: string): ModelConfig {
  refuseUnsupported(config);
  const { hiddenSize, numHeads, headDim } = widthAndHeads(config);
  checkHeads(config.where, numHeads, numHeads, headDim);
  config.integer('attention_head_size', headDim, headDim, headDim);
  const positions = config.integer('max_position_embeddings', 1, LIMITS.positions, 512);
  const sentences = readSentenceTransformers(dirname(config.where), hiddenSize);
  const vocabSize = config.integer('vocab_size', 1, LIMITS.vocabSize);
  return {
    architecture: 'deberta',
    vocabSize,
    hiddenSize,
    intermediateSize: config.integer('intermediate_size', 1, LIMITS.width),
    numLayers: config.integer('num_hidden_layers', 1, LIMITS.layers),
    numHeads,
    numKvHeads: numHeads,
    headDim,
    rmsNormEpsilon: config.positive('layer_norm_eps', 1e-7),
    activation: activationOf(config, 'hidden_act', LAYER_ACTIVATIONS),
    attentionBias: true,
    mlpBias: true,
    tieWordEmbeddings: false,
    maxPositions: Math.min(positions, sentences.maxTokens ?? positions),
    slidingWindow: null,
    rope: { theta: 1, rotaryDim: 0, scaling: { type: 'none' } },
    bosTokenId: null,
    eosTokenIds: [],
    padTokenId: tokenId(config.tokenIds('pad_token_id')[0], vocabSize),
    encoder: {
      bothWays: true,
      ...embeddingsOf(config, hiddenSize, positions),
      relative: distancesOf(config, positions),
      head: headOf(config, name, sentences, hiddenSize),
    },
  };
}

function embeddingsOf(
  config: ConfigFields,
  hiddenSize: number,
  positions: number,
): Pick<EncoderConfig, 'tokenTypes' | 'withoutTypes' | 'embeddingSize' | 'positionRows' | 'firstPosition'> {
  const types = config.integer('type_vocab_size', 0, LIMITS.vocabSize, 0);
  const embeddingSize = config.integer('embedding_size', 1, LIMITS.width, hiddenSize);
  return {
    tokenTypes: Math.max(1, types),
    ...(types === 0 && { withoutTypes: true }),
    ...(embeddingSize !== hiddenSize && { embeddingSize }),
    positionRows: config.boolean('position_biased_input', true) ? positions : 0,
    firstPosition: 0,
  };
}

/** How scores depend on distances. Where config.json has no such field, transformers has the value that stands here. */
function distancesOf(config: ConfigFields, positions: number): DisentangledPositions {
  const told = config.integer('max_relative_positions', -1, MAX_DISTANCES, -1);
  const farthest = told < 1 ? positions : told;
  if (farthest < 2 || farthest > MAX_DISTANCES) {
    const key = told < 1 ? 'max_position_embeddings' : 'max_relative_positions';
    throw config.error(key, `from 2 to ${MAX_DISTANCES}, as many distances as are told apart`);
  }
  const given = config.integer('position_buckets', -1, farthest, -1);
  if (given > 0 && given < 4) throw config.error('position_buckets', `from 4 to ${farthest}, or absent`);
  const kinds = kindsOf(config);
  return {
    kind: 'disentangled',
    buckets: given < 1 ? null : given,
    farthest,
    withKeys: kinds.has('c2p'),
    withQueries: kinds.has('p2c'),
    shared: config.boolean('share_att_key', false),
    normed: normOf(config),
  };
}

/** Products with distances: c2p has the key of a distance, p2c the query of one. */
function kindsOf(config: ConfigFields): ReadonlySet<unknown> {
  const given = config.raw('pos_att_type');
  const list: unknown = typeof given === 'string' ? given.toLowerCase().split('|') : given;
  const names = Array.isArray(list) ? list.map((one) => (typeof one === 'string' ? one.trim() : one)) : [];
  const known = names.length > 0 && names.every((one) => one === 'c2p' || one === 'p2c');
  if (!known) throw config.error('pos_att_type', 'c2p, p2c or both');
  return new Set(names);
}

function normOf(config: ConfigFields): boolean {
  const norm = config.raw('norm_rel_ebd') ?? 'none';
  if (norm !== 'none' && norm !== 'layer_norm') throw config.error('norm_rel_ebd', 'none or layer_norm');
  return norm === 'layer_norm';
}

function headOf(
  config: ConfigFields,
  name: string,
  sentences: SentenceTransformers,
  hiddenSize: number,
): EncoderHead {
  if (!name.endsWith('ForSequenceClassification')) return embeddingHead(config, sentences, hiddenSize);
  config.integer('pooler_hidden_size', hiddenSize, hiddenSize, hiddenSize);
  const activation = activationOf(config, 'pooler_hidden_act', HEAD_ACTIVATIONS);
  return poolerHead(config, sentences, hiddenSize, activation);
}

/** Refuses settings that would be computed wrongly, without an error, if they were ignored. */
function refuseUnsupported(config: ConfigFields): void {
  if (config.raw('quantization_config') !== undefined) {
    throw config.error('quantization_config', 'absent: weights in F32, F16 and BF16 are read');
  }
  if (!config.boolean('relative_attention', false)) {
    throw config.error('relative_attention', 'true: DeBERTa is computed with relative positions alone');
  }
  if (config.integer('conv_kernel_size', 0, LIMITS.width, 0) > 0) {
    throw config.error('conv_kernel_size', '0 or absent: a layer of convolution is not supported');
  }
}
