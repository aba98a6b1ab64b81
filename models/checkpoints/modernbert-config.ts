import { dirname } from 'node:path';
import type { EncoderHead } from '../encoder-config.js';
import type { ModelConfig } from '../model-config.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import { ACTIVATIONS, activationOf, checkHeads, tokenId, widthAndHeads } from './config-values.js';
import { embeddingHead, labelledHead } from './encoder-heads.js';
import { windowsByType } from './layer-windows.js';
import { ropeOfHuggingFace } from './rope-config.js';
import { ropesByType } from './ropes-by-type.js';
import { readSentenceTransformers, type SentenceTransformers } from './sentence-transformers.js';

const GLOBAL_THETA = 160_000;
const LOCAL_THETA = 10_000;

/** Makes the ModelConfig of a ModernBERT from config.json; `name` is its name of the architecture. */
export function configOfModernBert(config: ConfigFields, name: string): ModelConfig {
  const { hiddenSize, numHeads, headDim } = widthAndHeads(config);
  checkHeads(config.where, numHeads, numHeads, headDim);
  const positions = config.integer('max_position_embeddings', 1, LIMITS.positions, 8192);
  const sentences = readSentenceTransformers(dirname(config.where), hiddenSize);
  const maxPositions = Math.min(positions, sentences.maxTokens ?? positions);
  const vocabSize = config.integer('vocab_size', 1, LIMITS.vocabSize);
  return {
    architecture: 'modernbert',
    vocabSize,
    hiddenSize,
    intermediateSize: config.integer('intermediate_size', 1, LIMITS.width),
    numLayers: config.integer('num_hidden_layers', 1, LIMITS.layers),
    numHeads,
    numKvHeads: numHeads,
    headDim,
    rmsNormEpsilon: config.positive('norm_eps', 1e-5),
    normBias: config.boolean('norm_bias', false),
    activation: activationOf(config, 'hidden_activation', ACTIVATIONS),
    attentionBias: config.boolean('attention_bias', false),
    mlpBias: config.boolean('mlp_bias', false),
    tieWordEmbeddings: false,
    maxPositions,
    ...windowsOf(config),
    ...ropesOf(config, headDim, positions),
    bosTokenId: null,
    eosTokenIds: [],
    padTokenId: tokenId(config.tokenIds('pad_token_id')[0], vocabSize),
    encoder: {
      bothWays: true,
      tokenTypes: 1,
      positionRows: 0,
      firstPosition: 0,
      head: headOf(config, name, sentences, hiddenSize),
    },
  };
}

/** local_attention counts the tokens of both sides. */
function windowsOf(config: ConfigFields): Pick<ModelConfig, 'slidingWindow' | 'layerWindows'> {
  const numLayers = config.integer('num_hidden_layers', 1, LIMITS.layers);
  const window = Math.floor(config.integer('local_attention', 1, LIMITS.positions, 128) / 2) + 1;
  const period = config.integer('global_attn_every_n_layers', 1, LIMITS.layers, 3);
  const windows = windowsByType(config, numLayers, window, (layer) => layer % period !== 0);
  return { slidingWindow: null, layerWindows: windows };
}

function ropesOf(
  config: ConfigFields,
  headDim: number,
  positions: number,
): Pick<ModelConfig, 'rope' | 'localRopeTheta'> {
  if (config.raw('rope_parameters') !== undefined)
    return ropesByType(config, headDim, positions, { theta: GLOBAL_THETA, localTheta: LOCAL_THETA });
  if (config.raw('rope_scaling') !== undefined) throw config.error('rope_scaling', 'absent');
  const theta = config.positive('global_rope_theta', GLOBAL_THETA);
  return {
    rope: ropeOfHuggingFace(config, headDim, positions, { parameters: { rope_theta: theta } }),
    localRopeTheta: config.positive('local_rope_theta', LOCAL_THETA),
  };
}

function headOf(
  config: ConfigFields,
  name: string,
  sentences: SentenceTransformers,
  hiddenSize: number,
): EncoderHead {
  if (!name.endsWith('ForSequenceClassification')) return embeddingHead(config, sentences, hiddenSize);
  const pooling = config.raw('classifier_pooling') ?? 'cls';
  if (pooling !== 'cls' && pooling !== 'mean') throw config.error('classifier_pooling', 'cls or mean');
  const dense = {
    tensors: ['head.dense'],
    width: hiddenSize,
    biased: config.boolean('classifier_bias', false),
    activation: activationOf(config, 'classifier_activation', ACTIVATIONS),
    norm: { tensor: 'head.norm', biased: config.boolean('norm_bias', false) },
  };
  const out = { tensor: 'classifier', biased: true };
  return labelledHead(config, sentences, { pooling, layers: [dense], out });
}
