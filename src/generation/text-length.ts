import { ContextLengthError, contextWords } from '../errors/request-errors.js';
import type { TextModel } from './text-model.js';

/**
 * Assumed most UTF-16 units of a token, where the longest is not known; no vocabulary has a longer one for text. Longer
 * texts than this for each allowed token are not tokenized at all.
 */
export const MAX_UNITS_PER_TOKEN = 256;

export interface TextLimit {
  /** Most tokens of the text. */
  maxTokens: number;
  /** Tokens of the model's context, which the error names: a prompt leaves room in it for one of the answer. */
  contextTokens: number;
  /** Most UTF-16 units of one token. */
  unitsPerToken: number;
}

/** The limit of a model's prompts. */
export function promptLimit({
  codec,
  maxInputLen,
  maxSeqLen,
}: Pick<TextModel, 'codec' | 'maxInputLen' | 'maxSeqLen'>): TextLimit {
  const unitsPerToken = codec.unitsPerToken ?? MAX_UNITS_PER_TOKEN;
  return { maxTokens: maxInputLen, contextTokens: maxSeqLen, unitsPerToken };
}

/**
 * Refuses a text that is too long whatever its tokens are, before it is tokenized: the tokens of ten million characters
 * take seconds and gigabytes.
 * @throws ContextLengthError naming the field.
 */
export function checkTextLength(
  units: number,
  { maxTokens, contextTokens, unitsPerToken }: TextLimit,
  param: string,
): void {
  if (units <= maxTokens * unitsPerToken) return;
  throw new ContextLengthError(
    `${contextWords(contextTokens)}the prompt has at least ${Math.ceil(units / unitsPerToken)} tokens (it is ${units} ` +
      'characters long). Please reduce its length.',
    param,
  );
}
