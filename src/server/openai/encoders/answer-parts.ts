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
