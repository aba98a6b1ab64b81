import type { HeadLayer } from '../encoder-config.js';
import type { ModelConfig } from '../model-config.js';
import { ConfigFields, LIMITS } from './config-fields.js';
import { activationOf, widthAndHeads } from './config-values.js';
import { matryoshkaOf } from './encoder-heads.js';
import { isObject } from './file-reading.js';

const ACTIVATIONS = new Map<unknown, ModelConfig['activation']>([
  ['quick_gelu', 'quickGelu'],
  ['gelu', 'gelu'],
  ['gelu_new', 'geluTanh'],
  ['gelu_pytorch_tanh', 'geluTanh'],
  ['relu', 'relu'],
]);

/** Values of the config classes of transformers: a config inside of another is written without the fields that have them. */
const USUAL = {
  clip: {
    vocab_size: 49_408,
    hidden_size: 512,
    intermediate_size: 2048,
    num_hidden_layers: 12,
    num_attention_heads: 8,
    max_position_embeddings: 77,
    hidden_act: 'quick_gelu',
    layer_norm_eps: 1e-5,
  },
  siglip: {
    vocab_size: 32_000,
    hidden_size: 768,
    intermediate_size: 3072,
    num_hidden_layers: 12,
    num_attention_heads: 12,
    max_position_embeddings: 64,
    hidden_act: 'gelu_pytorch_tanh',
    layer_norm_eps: 1e-6,
  },
} as const;

/** Makes the ModelConfig of the part of a CLIP or SigLIP that reads texts, which config.json has under text_config. */
export function configOfClip(config: ConfigFields, architecture: keyof typeof USUAL): ModelConfig {
  if (config.raw('quantization_config') !== undefined)
    throw config.error('quantization_config', 'absent: weights in F32, F16 and BF16 are read');
  const inner = config.raw('text_config') ?? {};
  if (!isObject(inner)) throw config.error('text_config', 'an object');
  const given = Object.fromEntries(Object.entries(inner).filter(([, value]) => value !== null));
  const text = new ConfigFields(`${config.where}: text_config`, { ...USUAL[architecture], ...given });
  const vocabSize = text.integer('vocab_size', 1, LIMITS.vocabSize);
  const { hiddenSize, numHeads, headDim } = widthAndHeads(text);
  const positionRows = text.integer('max_position_embeddings', 1, LIMITS.positions);
  const isClip = architecture === 'clip';
  const layer: HeadLayer = isClip
    ? {
        ...LAYER,
        tensors: ['text_projection'],
        width: config.integer('projection_dim', 1, LIMITS.width, 512),
        biased: false,
      }
    : {
        ...LAYER,
        tensors: ['head'],
        width: text.integer('projection_size', 1, LIMITS.width, hiddenSize),
        biased: true,
      };
  return {
    architecture,
    vocabSize,
    hiddenSize,
    intermediateSize: text.integer('intermediate_size', 1, LIMITS.width),
    numLayers: text.integer('num_hidden_layers', 1, LIMITS.layers),
    numHeads,
    numKvHeads: numHeads,
    headDim,
    rmsNormEpsilon: text.positive('layer_norm_eps'),
    activation: activationOf(text, 'hidden_act', ACTIVATIONS),
    attentionBias: true,
    mlpBias: true,
    tieWordEmbeddings: false,
    maxPositions: positionRows,
    slidingWindow: null,
    rope: { theta: 1, rotaryDim: 0, scaling: { type: 'none' } },
    bosTokenId: null,
    eosTokenIds: [],
    padTokenId: null,
    encoder: {
      bothWays: !isClip,
      tokenTypes: 1,
      withoutTypes: true,
      positionRows,
      firstPosition: 0,
      head: {
        kind: 'embedding',
        // CLIP's texts end with a token of their own; SigLIP's are as long as in its training.
        pooling: 'last',
        ...(!isClip && { fillsTo: positionRows }),
        layers: [layer],
        normalize: true,
        matryoshka: matryoshkaOf(config, layer.width),
        prompts: {},
        defaultPrompt: null,
      },
    },
  };
}

const LAYER = { activation: 'none' } as const;
