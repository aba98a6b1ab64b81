import { elementsIn } from '../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../models/repository/model-config.js';

/**
 * The tensor in other dimensions, as `reshape` of a configuration has them: at most one is -1. Its elements stay as they are.
 * @param isBatched the first size is that of the batch, and stays
 */
export function reshaped(tensor: InferTensor, dims: readonly number[], isBatched: boolean): InferTensor {
  const known = [...(isBatched ? tensor.shape.slice(0, 1) : []), ...dims];
  const elements = elementsIn(tensor.shape);
  const others = elementsIn(known.filter((size) => size !== -1));
  return {
    ...tensor,
    shape: known.map((size) => (size === -1 ? (others === 0 ? 0 : elements / others) : size)),
  };
}

/** Inputs of a request in the shapes that the configuration's `reshape` has for the model. */
export function modelInputs(
  { input, max_batch_size: maxBatchSize }: ModelConfig,
  inputs: readonly InferTensor[],
): readonly InferTensor[] {
  if (input.every(({ reshape }) => reshape === undefined)) return inputs;
  return inputs.map((tensor) => {
    const reshape = input.find(({ name }) => name === tensor.name)?.reshape;
    return reshape === undefined ? tensor : reshaped(tensor, reshape.shape, maxBatchSize > 0);
  });
}
