import { dirname } from 'node:path';
import type { EncoderConfig, HeadLayer, RelativeBiases } from '../encoder-config.js';
import type { ModelConfig } from '../model-config.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import { activationOf, widthAndHeads } from './config-values.js';
import { embeddingHead, labelledHead } from './encoder-heads.js';
import { readSentenceTransformers } from './sentence-transformers.js';

const ACTIVATIONS = new Map<unknown, ModelConfig['activation']>([
  ['gelu', 'gelu'],
  ['gelu_new', 'geluTanh'],
  ['gelu_pytorch_tanh', 'geluTanh'],
  ['relu', 'relu'],
]);

/** Tensors that make a score, or the logits of labels, by architecture; absent for models that embed. */
const SCORE_TENSORS: Readonly<
  Record<string, readonly [dense: string, out: string, activation: HeadLayer['activation']]>
> = {
  BertForSequenceClassification: ['pooler.dense', 'classifier', 'tanh'],
  RobertaForSequenceClassification: ['classifier.dense', 'classifier.out_proj', 'tanh'],
  XLMRobertaForSequenceClassification: ['classifier.dense', 'classifier.out_proj', 'tanh'],
  ElectraForSequenceClassification: ['classifier.dense', 'classifier.out_proj', 'gelu'],
  AlbertForSequenceClassification: ['pooler', 'classifier', 'tanh'],
  DistilBertForSequenceClassification: ['pre_classifier', 'classifier', 'relu'],
  MPNetForSequenceClassification: ['classifier.dense', 'classifier.out_proj', 'tanh'],
};

/** Row of padding among MPNet's positions, and the buckets of its distances, which transformers takes whatever the config says. */
const MPNET = { padding: 1, buckets: 32, farthest: 128 } as const;

/** Fields of DistilBERT's config by BERT's names. */
const DISTILBERT_KEYS: Readonly<Record<string, string>> = {
  hidden_size: 'dim',
  num_attention_heads: 'n_heads',
  num_hidden_layers: 'n_layers',
  intermediate_size: 'hidden_dim',
  hidden_act: 'activation',
};

/** Makes the ModelConfig of a BERT model from config.json; `name` is its name of the architecture. */
export function configOfBert(config: ConfigFields, name: string): ModelConfig {
  refuseUnsupported(config);
  const isDistilled = name.startsWith('DistilBert');
  const key = (bert: string) => (isDistilled ? DISTILBERT_KEYS[bert]! : bert);
  const vocabSize = config.integer('vocab_size', 1, LIMITS.vocabSize);
  const { hiddenSize, numHeads, headDim } = widthAndHeads(config, key);
  const activation = activationOf(config, key('hidden_act'), ACTIVATIONS);
  const { encoder, maxPositions } = encoderOf(config, name, hiddenSize);
  const padTokenId = config.tokenIds('pad_token_id')[0];
  return {
    architecture: 'bert',
    vocabSize,
    hiddenSize,
    intermediateSize: config.integer(key('intermediate_size'), 1, LIMITS.width),
    numLayers: config.integer(key('num_hidden_layers'), 1, LIMITS.layers),
    numHeads,
    numKvHeads: numHeads,
    headDim,
    rmsNormEpsilon: config.positive('layer_norm_eps', 1e-12),
    activation,
    attentionBias: true,
    mlpBias: true,
    tieWordEmbeddings: false,
    maxPositions,
    slidingWindow: null,
    rope: { theta: 1, rotaryDim: 0, scaling: { type: 'none' } },
    bosTokenId: null,
    eosTokenIds: [],
    padTokenId: padTokenId === undefined || padTokenId >= vocabSize ? null : padTokenId,
    encoder,
  };
}

function encoderOf(
  config: ConfigFields,
  name: string,
  hiddenSize: number,
): { encoder: EncoderConfig; maxPositions: number } {
  const positionRows = config.integer('max_position_embeddings', 1, LIMITS.positions);
  const isMpnet = name.startsWith('MPNet');
  const firstPosition = firstPositionOf(config, name);
  const isDistilled = name.startsWith('DistilBert');
  const isAlbert = name.startsWith('Albert');
  if (isAlbert) refuseUnevenGroups(config, hiddenSize);
  if (firstPosition >= positionRows) {
    throw config.error('max_position_embeddings', `more than the ${firstPosition} rows that padding takes`);
  }
  const sentences = readSentenceTransformers(dirname(config.where), hiddenSize);
  const tensors = SCORE_TENSORS[name];
  const encoder: EncoderConfig = {
    bothWays: true,
    tokenTypes: isDistilled || isMpnet ? 1 : config.integer('type_vocab_size', 1, LIMITS.vocabSize, 2),
    ...((isDistilled || isMpnet) && { withoutTypes: true }),
    ...(isMpnet && { relative: biasesOf(config) }),
    ...((isAlbert || name.startsWith('Electra')) && {
      embeddingSize: config.integer('embedding_size', 1, LIMITS.width, 128),
    }),
    positionRows,
    firstPosition,
    head:
      tensors === undefined
        ? embeddingHead(config, sentences, hiddenSize)
        : labelledHead(config, sentences, {
            pooling: 'cls',
            layers: [{ tensors: [tensors[0]], width: hiddenSize, biased: true, activation: tensors[2] }],
            out: { tensor: tensors[1], biased: true },
          }),
  };
  const room = positionRows - firstPosition;
  return { encoder, maxPositions: Math.min(room, sentences.maxTokens ?? room) };
}

function firstPositionOf(config: ConfigFields, name: string): number {
  if (name.startsWith('MPNet')) return MPNET.padding + 1;
  return /Roberta/.test(name) ? config.integer('pad_token_id', 0, LIMITS.vocabSize, 1) + 1 : 0;
}

function biasesOf(config: ConfigFields): RelativeBiases {
  const { buckets, farthest } = MPNET;
  config.integer('relative_attention_num_buckets', buckets, buckets, buckets);
  return { kind: 'biases', buckets, farthest };
}

/** Refuses an ALBERT whose layers are not all one layer, or whose embeddings have the width of the layers, as no published one has them. */
function refuseUnevenGroups(config: ConfigFields, hiddenSize: number): void {
  for (const key of ['num_hidden_groups', 'inner_group_num']) config.integer(key, 1, 1, 1);
  if (config.integer('embedding_size', 1, LIMITS.width, 128) === hiddenSize)
    throw config.error('embedding_size', 'another width than hidden_size');
}

/** Refuses settings that would be computed wrongly, without an error, if they were ignored. */
function refuseUnsupported(config: ConfigFields): void {
  if (config.raw('quantization_config') !== undefined) {
    throw config.error('quantization_config', 'absent: weights in F32, F16 and BF16 are read');
  }
  if ((config.raw('position_embedding_type') ?? 'absolute') !== 'absolute') {
    // jina's models have the name of a class of transformers, and positions of their own.
    const other =
      config.raw('auto_map') === undefined ? '' : ', since code that comes with a model is not run';
    throw config.error('position_embedding_type', `absolute${other}`);
  }
  if (config.boolean('is_decoder', false)) throw config.error('is_decoder', 'false');
  if (config.boolean('add_cross_attention', false)) throw config.error('add_cross_attention', 'false');
}
