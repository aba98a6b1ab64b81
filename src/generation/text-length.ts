import { ContextLengthError } from './errors.js';

/**
 * No vocabulary has a longer token for text: where it is not known how long the longest is, a text of more UTF-16 units than
 * this for each token that it may have is not tokenized at all.
 */
export const MAX_UNITS_PER_TOKEN = 256;

/**
 * Refuses a text that is too long whatever its tokens are, before anybody makes them: those of ten million characters take
 * seconds and gigabytes.
 * @param unitsPerToken UTF-16 units that a token stands for at most. @throws ContextLengthError naming the field.
 */
export function checkTextLength(
  units: number,
  { maxTokens, unitsPerToken }: { maxTokens: number; unitsPerToken: number },
  param: string,
): void {
  if (units <= maxTokens * unitsPerToken) return;
  throw new ContextLengthError(
    `The prompt has at least ${Math.ceil(units / unitsPerToken)} tokens (it is ${units} characters long), but the ` +
      `longest prompt that this model takes has ${maxTokens}.`,
    param,
  );
}
