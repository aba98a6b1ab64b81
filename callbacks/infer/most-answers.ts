import type { InferParameters, InferTensor } from './infer-types.js';

/** Answers to one request, and their bytes, that may be held anywhere on their way: until there is room, until it is their turn, until all are there. */
export const MOST_ANSWERS = 10_000;
export const MOST_ANSWER_BYTES = 64 * 2 ** 20;
/** The same in words. */
export const MOST_ANSWERS_TEXT = `${MOST_ANSWERS.toLocaleString('en')} answers or ${MOST_ANSWER_BYTES / 2 ** 20} MiB`;

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
