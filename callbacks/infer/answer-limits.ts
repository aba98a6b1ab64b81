import type { InferParameters, InferTensor } from './infer-types.js';

/** Answers to one request, and their bytes, that may be held anywhere on their way: until there is room, until it is their turn, until all are there. */
export const MAX_ANSWERS = 10_000;
export const MAX_ANSWER_BYTES = 64 * 2 ** 20;
/** The same in words. */
export const MAX_ANSWERS_TEXT = `${MAX_ANSWERS.toLocaleString('en')} answers or ${MAX_ANSWER_BYTES / 2 ** 20} MiB`;

/** Bytes of the tensors and parameters of a request or an answer, about. */
export function bytesOf(
  tensors: readonly InferTensor[],
  parameters: InferParameters | null | undefined,
): number {
  let bytes = 0;
  for (const { data } of tensors) bytes += data.length;
  for (const name in parameters) {
    const value = parameters[name];
    bytes += name.length + (typeof value === 'string' ? value.length : 8);
  }
  return bytes;
}
