import type { TruncateSide } from '../../../encoding/encoder-codec.js';
import { ApiError } from '../../web/errors.js';

/** The usage of an answer without generated tokens. */
export function usageOf(promptTokens: number) {
  return { prompt_tokens: promptTokens, total_tokens: promptTokens };
}

export function contradiction(field: string, other: string): ApiError {
  return new ApiError(400, `'${field}' contradicts '${other}': give one of them.`, {
    param: field,
    code: 'invalid_value',
  });
}

/** The value of a field that has two names. @throws ApiError where both are given and differ */
export function oneOf<T, A extends keyof T & string, B extends keyof T & string>(
  request: T,
  a: A,
  b: B,
): T[A] | T[B] {
  const { [a]: first, [b]: second } = request;
  if (first !== undefined && second !== undefined && (first as unknown) !== second) throw contradiction(b, a);
  return first ?? second;
}

/** Fields that say which texts are cut. */
interface Cutting {
  truncate_prompt_tokens?: number | undefined;
  truncation?: boolean | undefined;
  truncate?: boolean | undefined;
}

/** What truncate_prompt_tokens says, or the words of Voyage, Jina and text-embeddings-inference for "to the model's limit". */
export function truncatedTo(request: Cutting): number | undefined {
  const cuts = oneOf(request, 'truncation', 'truncate');
  const { truncate_prompt_tokens: tokens = cuts ? -1 : undefined } = request;
  if (cuts === false && tokens !== undefined) throw contradiction('truncation', 'truncate_prompt_tokens');
  return tokens;
}

/** The side that vLLM's truncation_side or text-embeddings-inference's truncation_direction names. */
export function cutSide(named: string | undefined): TruncateSide {
  return named?.toLowerCase() === 'left' ? 'start' : 'end';
}
