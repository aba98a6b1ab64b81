import { MAX_INT32 } from '../../../base/int32.js';
import { callback, oneOf, rule, SWITCH, shown, TEXT, wholeNumber } from '../../../base/option-values.js';
import type { ClassifiedInput, ClassifyOptions } from '../../encoding/classify.js';
import type { EmbedOptions } from '../../encoding/embed.js';
import type { EncoderInput } from '../../encoding/encoder-codec.js';
import { INPUT_TYPES } from '../../encoding/prompts.js';
import type { ScoreOptions } from '../../encoding/score.js';
import type { TokenOptions } from '../../encoding/token-outputs.js';
import { InvalidRequestError } from '../../errors/request-errors.js';
import { optionFault, type Rules, SIGNAL } from '../../options/option-faults.js';
import { type ImageInput, isImage } from '../given-pictures.js';

const COUNT = wholeNumber(1, MAX_INT32);
const TRUNCATED_TO = rule(
  `-1 or a whole number from 1 to ${MAX_INT32}`,
  (value) => value === -1 || COUNT.accepts(value),
);

const OF_CALLS = { truncatePromptTokens: TRUNCATED_TO, signal: SIGNAL };

const OF_SCORES: Rules<ScoreOptions> = { ...OF_CALLS, instruction: TEXT };

const OF_RANKINGS: Rules<ScoreOptions & { top?: number | undefined }> = { ...OF_SCORES, top: COUNT };

const OF_TEXTS = {
  ...OF_CALLS,
  truncateSide: oneOf('start', 'end'),
  onProgress: rule('a function', (value) => typeof value === 'function'),
};

const OF_TOKENS: Rules<TokenOptions> = {
  ...OF_TEXTS,
  promptName: TEXT,
  inputType: oneOf(...INPUT_TYPES),
};

const OF_EMBEDDINGS: Rules<EmbedOptions & { onTokens?: unknown }> = {
  ...OF_TOKENS,
  onTokens: callback(),
  dimensions: COUNT,
  normalize: SWITCH,
};

const OF_CLASSES: Rules<ClassifyOptions> = { ...OF_TEXTS, rawScores: SWITCH };

function check<Options>(call: string, options: unknown, rules: Rules<Options>): void {
  const fault = optionFault(call, '{ truncatePromptTokens: -1 }', options, rules);
  if (fault !== null) throw new InvalidRequestError(fault.message, fault.option);
}

/** @throws InvalidRequestError for an unknown option, or a value that an option does not take. */
export function checkScoreOptions(options: unknown): void {
  check('score', options, OF_SCORES);
}

/** @throws InvalidRequestError as checkScoreOptions. */
export function checkRerankOptions(options: unknown): void {
  check('rerank', options, OF_RANKINGS);
}

/**
 * The inputs of a call as a list.
 * @throws InvalidRequestError for what is neither text nor token ids, and as checkScoreOptions
 */
export function checkedEmbedding(inputs: unknown, options: unknown): readonly (EncoderInput | ImageInput)[] {
  check('embed', options, OF_EMBEDDINGS);
  const isEmbedded = (value: unknown): value is EncoderInput | ImageInput => isInput(value) || isImage(value);
  const given = isImage(inputs) ? [inputs] : inputs;
  return checkedInputs('embed', given, isEmbedded, 'a text, token ids or { image } is expected');
}

/** The inputs of a call for what is given of tokens, as a list. @throws InvalidRequestError as checkedEmbedding */
export function checkedTokenOutput(call: string, texts: unknown, options: unknown): readonly EncoderInput[] {
  check(call, options, OF_TOKENS);
  return checkedInputs(call, texts, isInput, 'a text or token ids are expected');
}

/** The inputs of a call that classifies, as a list. @throws InvalidRequestError as checkedEmbedding */
export function checkedClassification(texts: unknown, options: unknown): readonly ClassifiedInput[] {
  check('classify', options, OF_CLASSES);
  const isPair = (value: unknown): value is [string, string] =>
    Array.isArray(value) && value.length === 2 && value.every((text) => typeof text === 'string');
  return checkedInputs(
    'classify',
    texts,
    (value): value is ClassifiedInput => isInput(value) || isPair(value),
    'a text, a pair of texts or token ids are expected',
  );
}

function checkedInputs<T>(
  call: string,
  texts: unknown,
  isOne: (value: unknown) => value is T,
  expected: string,
): readonly T[] {
  const inputs = typeof texts === 'string' ? [texts] : texts;
  if (!Array.isArray(inputs))
    throw new InvalidRequestError(
      `${call} needs a text or a list of texts; it was given ${shown(texts)}.`,
      'input',
    );
  for (let i = 0; i < inputs.length; i++) {
    if (isOne(inputs[i])) continue;
    throw new InvalidRequestError(`Input ${i} is ${shown(inputs[i])}; ${expected}.`, 'input');
  }
  return inputs as readonly T[];
}

function isInput(value: unknown): value is EncoderInput {
  return (
    typeof value === 'string' ||
    value instanceof Int32Array ||
    (Array.isArray(value) && value.every(Number.isInteger))
  );
}

/** The documents of a call as a list of texts. @throws InvalidRequestError */
export function checkedDocuments(query: unknown, documents: unknown): readonly string[] {
  if (typeof query !== 'string')
    throw new InvalidRequestError(`query is ${shown(query)}; a text is expected.`, 'query');
  const texts = typeof documents === 'string' ? [documents] : documents;
  if (Array.isArray(texts) && texts.every((text) => typeof text === 'string')) return texts;
  throw new InvalidRequestError('documents must be texts.', 'documents');
}
