import { dirname } from 'node:path';
import type { EncoderConfig, ScoreHead } from '../encoder-config.js';
import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import { readSentenceTransformers } from './sentence-transformers.js';

const ACTIVATIONS = new Map<unknown, ModelConfig['activation']>([
  ['gelu', 'gelu'],
  ['gelu_new', 'geluTanh'],
  ['gelu_pytorch_tanh', 'geluTanh'],
  ['relu', 'relu'],
]);

/** Tensors that make the score of a cross-encoder, by architecture; absent for models that embed. */
const SCORE_TENSORS: Readonly<Record<string, ScoreHead['tensors']>> = {
  BertForSequenceClassification: ['pooler.dense', 'classifier'],
  RobertaForSequenceClassification: ['classifier.dense', 'classifier.out_proj'],
  XLMRobertaForSequenceClassification: ['classifier.dense', 'classifier.out_proj'],
};

/** Makes the ModelConfig of a BERT model from config.json; `name` is its name of the architecture. */
export function configOfBert(config: ConfigFields, name: string): ModelConfig {
  refuseUnsupported(config);
  const vocabSize = config.integer('vocab_size', 1, LIMITS.vocabSize);
  const hiddenSize = config.integer('hidden_size', 1, LIMITS.width);
  const numHeads = config.integer('num_attention_heads', 1, LIMITS.heads);
  if (hiddenSize % numHeads !== 0) {
    throw config.error('hidden_size', `a multiple of the ${numHeads} attention heads`);
  }
  const headDim = hiddenSize / numHeads;
  const activation = ACTIVATIONS.get(config.raw('hidden_act') ?? 'gelu');
  if (!activation) throw config.error('hidden_act', `one of ${[...ACTIVATIONS.keys()].join(', ')}`);
  const { encoder, maxPositions } = encoderOf(config, name, hiddenSize);
  const padTokenId = config.tokenIds('pad_token_id')[0];
  return {
    architecture: 'bert',
    vocabSize,
    hiddenSize,
    intermediateSize: config.integer('intermediate_size', 1, LIMITS.width),
    numLayers: config.integer('num_hidden_layers', 1, LIMITS.layers),
    numHeads,
    numKvHeads: numHeads,
    headDim,
    rmsNormEpsilon: encoder.layerNormEpsilon,
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
  const firstPosition = name.startsWith('Bert')
    ? 0
    : config.integer('pad_token_id', 0, LIMITS.vocabSize, 1) + 1;
  if (firstPosition >= positionRows) {
    throw config.error('max_position_embeddings', `more than the ${firstPosition} rows that padding takes`);
  }
  const sentences = readSentenceTransformers(dirname(config.where), hiddenSize);
  const tensors = SCORE_TENSORS[name];
  const encoder: EncoderConfig = {
    layerNormEpsilon: config.positive('layer_norm_eps', 1e-12),
    tokenTypes: config.integer('type_vocab_size', 1, LIMITS.vocabSize, 2),
    positionRows,
    firstPosition,
    head:
      tensors === undefined
        ? {
            kind: 'embedding',
            pooling: sentences.pooling,
            normalize: sentences.normalize,
            matryoshka: matryoshkaOf(config, hiddenSize),
          }
        : { kind: 'score', tensors, activation: scoreActivation(config) },
  };
  const room = positionRows - firstPosition;
  return { encoder, maxPositions: Math.min(room, sentences.maxTokens ?? room) };
}

/** Sizes to which the embeddings may be cut, from the fields of config.json that vLLM reads. */
function matryoshkaOf(config: ConfigFields, hiddenSize: number): number[] | 'any' | null {
  const sizes = config.raw('matryoshka_dimensions');
  if (sizes === undefined) return config.boolean('is_matryoshka', false) ? 'any' : null;
  const fits =
    Array.isArray(sizes) && sizes.every((size) => Number.isInteger(size) && size >= 1 && size <= hiddenSize);
  if (!fits) throw config.error('matryoshka_dimensions', `an array of sizes from 1 to ${hiddenSize}`);
  return sizes as number[];
}

/**
 * Activation of a cross-encoder with one label, as in sentence-transformers: sigmoid, unless config.json says
 * otherwise.
 */
function scoreActivation(config: ConfigFields): ScoreHead['activation'] {
  const labels = config.raw('id2label');
  const numLabels =
    typeof labels === 'object' && labels !== null
      ? Object.keys(labels).length
      : config.integer('num_labels', 1, LIMITS.vocabSize, 2);
  if (numLabels !== 1) {
    throw new CheckpointError(
      `${config.where}: a cross-encoder has one label, which is its score; found ${numLabels} labels (id2label), which makes a classifier, and these are not supported.`,
    );
  }
  const own = config.raw('sentence_transformers');
  const named =
    (typeof own === 'object' && own !== null ? (own as Record<string, unknown>).activation_fn : undefined) ??
    config.raw('sbert_ce_default_activation_function');
  if (named === undefined || named === 'torch.nn.modules.activation.Sigmoid') return 'sigmoid';
  if (named === 'torch.nn.modules.linear.Identity') return 'none';
  throw new CheckpointError(
    `${config.where}: the score's activation (activation_fn) should be torch.nn.modules.activation.Sigmoid or torch.nn.modules.linear.Identity, found ${JSON.stringify(named)}.`,
  );
}

/** Refuses settings that would be computed wrongly, without an error, if they were ignored. */
function refuseUnsupported(config: ConfigFields): void {
  if (config.raw('quantization_config') !== undefined) {
    throw config.error('quantization_config', 'absent: weights in F32, F16 and BF16 are read');
  }
  if ((config.raw('position_embedding_type') ?? 'absolute') !== 'absolute') {
    throw config.error('position_embedding_type', 'absolute');
  }
  if (config.boolean('is_decoder', false)) throw config.error('is_decoder', 'false');
  if (config.boolean('add_cross_attention', false)) throw config.error('add_cross_attention', 'false');
}
