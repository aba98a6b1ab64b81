import type { EmbeddingHead, ScoreHead } from '../encoder-config.js';
import { CheckpointError } from './checkpoint.js';
import { type ConfigFields, LIMITS } from './config-fields.js';
import type { SentenceTransformers } from './sentence-transformers.js';

/** The head that sentence-transformers' files describe. @param isAny whether embeddings may be cut to any size, whatever the config says */
export function embeddingHead(
  config: ConfigFields,
  sentences: SentenceTransformers,
  hiddenSize: number,
  isAny = false,
): EmbeddingHead {
  const { pooling, layers, normalize, prompts, defaultPrompt } = sentences;
  const width = layers.at(-1)?.width ?? hiddenSize;
  const matryoshka = matryoshkaOf(config, width) ?? (isAny ? 'any' : null);
  return { kind: 'embedding', pooling, layers, normalize, matryoshka, prompts, defaultPrompt };
}

/** Sizes to which the embeddings may be cut, from the fields of config.json that vLLM reads. */
function matryoshkaOf(config: ConfigFields, width: number): number[] | 'any' | null {
  const sizes = config.raw('matryoshka_dimensions');
  if (sizes === undefined) return config.boolean('is_matryoshka', false) ? 'any' : null;
  const fits =
    Array.isArray(sizes) && sizes.every((size) => Number.isInteger(size) && size >= 1 && size <= width);
  if (!fits) throw config.error('matryoshka_dimensions', `an array of sizes from 1 to ${width}`);
  return sizes as number[];
}

/**
 * Activation of a cross-encoder with one label, as in sentence-transformers: sigmoid, unless config.json says
 * otherwise.
 */
export function scoreActivation(
  config: ConfigFields,
  { activation, logitScore }: SentenceTransformers,
): ScoreHead['activation'] {
  const labels = config.raw('id2label');
  const numLabels =
    typeof labels === 'object' && labels !== null
      ? Object.keys(labels).length
      : config.integer('num_labels', 1, LIMITS.vocabSize, 2);
  if (numLabels !== 1 && logitScore === null) {
    throw new CheckpointError(
      `${config.where}: a cross-encoder has one label, which is its score; found ${numLabels} labels (id2label), which makes a classifier, and these are not supported.`,
    );
  }
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
