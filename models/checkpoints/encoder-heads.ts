import { dirname } from 'node:path';
import {
  type ClassificationHead,
  type EmbeddingHead,
  type HeadLayer,
  type ScoreHead,
  UNNAMED_LABEL,
} from '../encoder-config.js';
import { CheckpointError } from './checkpoint.js';
import type { ConfigFields } from './config-fields.js';
import { isObject, type JsonObject } from './file-reading.js';
import type { SentenceTransformers } from './sentence-transformers.js';
import { readTokenLayers } from './token-layers.js';

/** Bounds on the labels of a classifier: an answer has a number for each. */
const MAX_LABELS = 16_384;
const MAX_LABEL_UNITS = 1024;

const ACTIVATIONS_OF_PROBLEMS = new Map<unknown, ClassificationHead['activation']>([
  ['single_label_classification', 'softmax'],
  ['multi_label_classification', 'sigmoid'],
  ['regression', 'none'],
]);

/** The head that sentence-transformers' files describe. @param isAny whether embeddings may be cut to any size, whatever the config says */
export function embeddingHead(
  config: ConfigFields,
  sentences: SentenceTransformers,
  hiddenSize: number,
  isAny = false,
): EmbeddingHead {
  const { pooling, lacksPooling, layers, normalize, prompts, defaultPrompt } = sentences;
  if (lacksPooling !== null) throw new CheckpointError(lacksPooling);
  const width = layers.at(-1)?.width ?? hiddenSize;
  const matryoshka = matryoshkaOf(config, width) ?? (isAny ? 'any' : null);
  const tokens = readTokenLayers(dirname(config.where), hiddenSize, pooling);
  const head = { kind: 'embedding' as const, pooling, layers, normalize, matryoshka, prompts, defaultPrompt };
  return tokens === undefined ? head : { ...head, tokens };
}

/** Sizes to which the embeddings may be cut, from the fields of config.json that vLLM reads. */
export function matryoshkaOf(config: ConfigFields, width: number): number[] | 'any' | null {
  const sizes = config.raw('matryoshka_dimensions');
  if (sizes === undefined) return config.boolean('is_matryoshka', false) ? 'any' : null;
  const fits =
    Array.isArray(sizes) && sizes.every((size) => Number.isInteger(size) && size >= 1 && size <= width);
  if (!fits) throw config.error('matryoshka_dimensions', `an array of sizes from 1 to ${width}`);
  return sizes as number[];
}

/** What a head reads of a text, before the layer that makes a logit of each label. */
export interface BeforeLabels extends Pick<ScoreHead, 'pooling' | 'padding' | 'instruction'> {
  layers: readonly HeadLayer[];
  /** The last layer, but for its width. */
  out: { tensor: string; biased: boolean };
}

/** The head of a model `...ForSequenceClassification`: a score where it has one label, else a logit of each. */
export function labelledHead(
  config: ConfigFields,
  sentences: SentenceTransformers,
  { out, layers, instruction, ...pooled }: BeforeLabels,
): ScoreHead | ClassificationHead {
  const labels = labelsOf(config);
  const { tensor, biased } = out;
  const last: HeadLayer = { tensors: [tensor], width: labels.length, biased, activation: 'none' };
  const head = { ...pooled, layers: [...layers, last] };
  if (labels.length > 1)
    return { kind: 'classification', ...head, labels, activation: labelActivation(config) };
  const [label] = labels as [string];
  return {
    kind: 'score',
    ...head,
    activation: scoreActivation(config, sentences),
    ...(label !== UNNAMED_LABEL && { label }),
    ...(instruction !== undefined && { instruction }),
  };
}

/** The head of a classifier whose pooler, a layer as wide as the model, reads the first token. */
export function poolerHead(
  config: ConfigFields,
  sentences: SentenceTransformers,
  width: number,
  activation: HeadLayer['activation'],
): ScoreHead | ClassificationHead {
  const dense = { tensors: ['pooler.dense'], width, biased: true, activation };
  const out = { tensor: 'classifier', biased: true };
  return labelledHead(config, sentences, { pooling: 'cls', layers: [dense], out });
}

/** Names of the labels, which id2label numbers from 0 on; transformers has names and a number of its own where it is missing. */
function labelsOf(config: ConfigFields): readonly string[] {
  const names = config.raw('id2label');
  if (names === undefined) {
    const count = config.integer('num_labels', 1, MAX_LABELS, 2);
    return Array.from({ length: count }, (_, i) => `LABEL_${i}`);
  }
  const count = isObject(names) ? Object.keys(names).length : 0;
  const labels = Array.from({ length: Math.min(count, MAX_LABELS) }, (_, i) => (names as JsonObject)[i]);
  const isLabel = (label: unknown) => typeof label === 'string' && label.length <= MAX_LABEL_UNITS;
  if (count < 1 || count > MAX_LABELS || !labels.every(isLabel)) {
    throw config.error(
      'id2label',
      `an object of 1 to ${MAX_LABELS} labels by their numbers from 0 on, each of ${MAX_LABEL_UNITS} characters at most`,
    );
  }
  return labels as string[];
}

/** What makes scores of several logits, as transformers' pipeline for texts reads problem_type. */
function labelActivation(config: ConfigFields): ClassificationHead['activation'] {
  const type = config.raw('problem_type') ?? 'single_label_classification';
  const activation = ACTIVATIONS_OF_PROBLEMS.get(type);
  if (activation !== undefined) return activation;
  throw config.error('problem_type', `one of ${[...ACTIVATIONS_OF_PROBLEMS.keys()].join(', ')}`);
}

/** Activation of a score, as in sentence-transformers: sigmoid, unless the model's files say otherwise. */
export function scoreActivation(
  config: ConfigFields,
  { activation }: SentenceTransformers,
): ScoreHead['activation'] {
  const own = config.raw('sentence_transformers');
  const named =
    (typeof own === 'object' && own !== null ? (own as Record<string, unknown>).activation_fn : undefined) ??
    config.raw('sbert_ce_default_activation_function') ??
    activation ??
    undefined;
  if (named === undefined || named === 'torch.nn.modules.activation.Sigmoid') return 'sigmoid';
  if (named === 'torch.nn.modules.linear.Identity') return 'none';
  throw new CheckpointError(
    `${config.where}: the score's activation (activation_fn) should be torch.nn.modules.activation.Sigmoid or torch.nn.modules.linear.Identity, found ${JSON.stringify(named)}.`,
  );
}
