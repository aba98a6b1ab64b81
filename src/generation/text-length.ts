import { ContextLengthError, contextWords } from './errors.js';

/**
 * Assumed most UTF-16 units of a token, where the longest is not known; no vocabulary has a longer one for text. Longer
 * texts than this for each allowed token are not tokenized at all.
 */
export const MAX_UNITS_PER_TOKEN = 256;

/**
 * Refuses a text that is too long whatever its tokens are, before it is tokenized: the tokens of ten million characters
 * take seconds and gigabytes.
 * @param unitsPerToken most UTF-16 units of one token. @throws ContextLengthError naming the field.
 */
export function checkTextLength(
  units: number,
  { maxTokens, unitsPerToken }: { maxTokens: number; unitsPerToken: number },
  param: string,
): void {
  if (units <= maxTokens * unitsPerToken) return;
  throw new ContextLengthError(
    `${contextWords(maxTokens)}the prompt has at least ${Math.ceil(units / unitsPerToken)} tokens (it is ${units} ` +
      'characters long). Please reduce its length.',
    param,
  );
}
