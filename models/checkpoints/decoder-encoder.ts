import { dirname, join } from 'node:path';
import type { ClassificationHead, EncoderConfig, ScoreHead } from '../encoder-config.js';
import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import type { ConfigFields } from './config-fields.js';
import { embeddingHead, labelledHead, scoreActivation } from './encoder-heads.js';
import { isObject, readJsonObject } from './file-reading.js';
import type { LogitScore } from './sentence-modules.js';
import { readSentenceTransformers, type SentenceTransformers } from './sentence-transformers.js';

/** Decoders whose output is written in their own way, so that no head of an encoder fits in its place. */
const GENERATES_ONLY: ReadonlySet<string> = new Set([
  'gpt2',
  'cohere',
  'cohere2',
  'nemotron',
  'falconh1',
  'nemotronh',
]);
/** Decoders of which the published embedders are trained for embeddings that are cut. */
export const MATRYOSHKA: ReadonlySet<string> = new Set(['qwen3', 'gemma3']);

const MAX_TOKENIZER_BYTES = 256 * 1024 * 1024;

/** Tensors of a score by the logits of tokens: rows of the output layer, which stand apart under these names. */
export const TOKEN_SCORES = ['score.yes', 'score.no'] as const;

const BOTH_WAYS = 'use_bidirectional_attention';

/** True for a Gemma whose tokens attend also to what follows them; of those of Gemma 4's "vision" pictures alone do. */
export function attendsBothWays(config: ConfigFields): boolean {
  return config.raw(BOTH_WAYS) !== 'vision' && config.boolean(BOTH_WAYS, false);
}

/**
 * A decoder as its files describe it: as an encoder where they say that it embeds texts or scores pairs of them.
 *
 *   ...Model                          embeds
 *   ...ForSequenceClassification      scores, or classifies where it has several labels, by a layer over the last token
 *   ...ForCausalLM with modules.json  embeds, or scores by the logits of tokens (LogitScore)
 *   ...ForCausalLM                    scores, where config.json has classifier_from_token, else generates
 */
export function asEncoder(config: ConfigFields, name: string, model: ModelConfig): ModelConfig {
  const { hiddenSize, architecture } = model;
  const usual = name.endsWith('Model') ? 'mean' : 'last';
  const sentences = readSentenceTransformers(dirname(config.where), hiddenSize, usual);
  const kind = kindOf(config, name, sentences);
  if (kind === null) {
    if (attendsBothWays(config))
      throw config.error(BOTH_WAYS, 'false: a token that is written sees none after it');
    return model;
  }
  if (GENERATES_ONLY.has(architecture))
    throw config.error(
      'architectures',
      `those of a model that embeds texts, since ${architecture} generates them alone`,
    );
  refuseOwnCode(config);
  const encoder: EncoderConfig = {
    bothWays: attendsBothWays(config) || !config.boolean('is_causal', true),
    tokenTypes: 1,
    positionRows: 0,
    firstPosition: 0,
    head:
      kind === 'embedding'
        ? embeddingHead(config, sentences, hiddenSize, MATRYOSHKA.has(architecture))
        : scoreHead(config, name, sentences, model),
  };
  return {
    ...model,
    // The layer of the logits is read by no encoder; a score by tokens takes rows of it.
    tieWordEmbeddings: model.tieWordEmbeddings || encoder.head.kind === 'embedding',
    maxPositions: Math.min(model.maxPositions, sentences.maxTokens ?? model.maxPositions),
    encoder,
  };
}

function kindOf(config: ConfigFields, name: string, sentences: SentenceTransformers) {
  if (name.endsWith('ForSequenceClassification')) return 'score';
  if (sentences.logitScore !== null || config.raw('classifier_from_token') !== undefined) return 'score';
  return name.endsWith('Model') || sentences.hasModules ? 'embedding' : null;
}

function scoreHead(
  config: ConfigFields,
  name: string,
  sentences: SentenceTransformers,
  { vocabSize, padTokenId }: ModelConfig,
): ScoreHead | ClassificationHead {
  const { logitScore, prompts, defaultPrompt } = sentences;
  const instruction = defaultPrompt === null ? {} : { instruction: prompts[defaultPrompt]! };
  if (name.endsWith('ForSequenceClassification')) {
    return labelledHead(config, sentences, {
      pooling: 'last',
      layers: [],
      out: { tensor: 'score', biased: false },
      // transformers recognizes padding by its token alone, so it takes the same token in a text for padding
      // too.
      ...(padTokenId !== null && { padding: padTokenId }),
      ...instruction,
    });
  }
  const tokens = logitScore ?? tokensByName(config);
  const tooLarge = tokens.find((token) => token !== null && token >= vocabSize);
  if (tooLarge !== undefined) {
    throw new CheckpointError(
      `${config.where}: the score is made of the logit of token ${tooLarge}, but the vocabulary has ${vocabSize}.`,
    );
  }
  const tensors = TOKEN_SCORES.slice(0, tokens[1] === null ? 1 : 2);
  const layers = [{ tensors, width: tensors.length, biased: false, activation: 'none' } as const];
  const activation = logitScore === null ? 'sigmoid' : scoreActivation(config, sentences);
  return { kind: 'score', pooling: 'last', layers, activation, tokens, ...instruction };
}

/** Tokens of classifier_from_token, as vLLM reads it: the texts of the tokens for no and for yes. */
function tokensByName(config: ConfigFields): LogitScore {
  const names = config.raw('classifier_from_token');
  const file = join(dirname(config.where), 'tokenizer.json');
  const model = readJsonObject(file, MAX_TOKENIZER_BYTES)?.model;
  const vocab = isObject(model) && isObject(model.vocab) ? model.vocab : {};
  const tokenOf = (name: unknown) =>
    typeof name === 'string' && Object.hasOwn(vocab, name) ? vocab[name] : undefined;
  const [no, yes] = Array.isArray(names) && names.length === 2 ? names.map(tokenOf) : [];
  if (typeof no === 'number' && typeof yes === 'number') return [yes, no];
  throw config.error('classifier_from_token', `two tokens of ${file}, the one for no and the one for yes`);
}

/** Code that comes with a model may compute anything, such as attention both ways. */
function refuseOwnCode(config: ConfigFields): void {
  const own = config.raw('auto_map');
  if (!isObject(own) || own.AutoModel === undefined || config.raw('is_causal') !== undefined) return;
  throw config.error(
    'auto_map',
    'without AutoModel, since code of its own is not run; is_causal there says that it is this architecture, causal (true) or both ways (false)',
  );
}
