import { input, says } from '../../base/named-text.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { Tensor } from '../../callbacks/types.js';

/**
 * Brings tensors that TensorRT-LLM's header (inferenceRequest.h) has in another form to that of this engine:
 *
 *   noRepeatNgramSize  [1]  its name of no_repeat_ngram_size
 *   input_lengths      [1]  tokens of input_ids that are the prompt; what follows them is padding
 *
 * @throws ParameterError for a length that input_ids does not have, or two sizes that differ
 */
export function ownForm(inputs: Record<string, Tensor>): Record<string, Tensor> {
  const { noRepeatNgramSize: size, input_lengths: length, ...own } = inputs;
  if (size === undefined && length === undefined) return inputs;
  if (size !== undefined) {
    const { no_repeat_ngram_size: given = size } = own;
    if (given.data[0] !== size.data[0]) {
      throw new ParameterError(
        'noRepeatNgramSize',
        says`${input('noRepeatNgramSize')} is ${size.data[0]} and ${input('no_repeat_ngram_size')} is ${given.data[0]}; both are the same setting, and one of them is enough.`,
      );
    }
    own.no_repeat_ngram_size = size;
  }
  if (length !== undefined) own.input_ids = cut(own.input_ids!, length.data[0] as number);
  return own;
}

function cut(ids: Tensor, length: number): Tensor {
  const most = ids.data.length;
  if (length === most) return ids;
  if (length < 1 || length > most) {
    throw new ParameterError(
      'input_lengths',
      says`${input('input_lengths')} is ${length}; ${input('input_ids')} has ${most} tokens, so it must be from 1 to ${most}.`,
    );
  }
  return { shape: [1, length], data: ids.data.subarray(0, length) };
}
