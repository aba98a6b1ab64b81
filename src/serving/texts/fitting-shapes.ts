import type { InferRequest, InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';

/**
 * The request with its tensors in the shapes of the configuration, where they differ by a batch dimension of 1 alone: clients of some
 * servers send one, those of others do not.
 *
 *   max_tokens [1, 1] -> [1]        input_ids [5] -> [1, 5]
 */
export function inFittingShapes({ input }: Pick<ModelConfig, 'input'>, request: InferRequest): InferRequest {
  const dimsOf = new Map(input.map(({ name, dims }) => [name, dims]));
  const inputs = request.inputs.map((tensor) => fitting(tensor, dimsOf.get(tensor.name)));
  return { ...request, inputs };
}

function fitting(tensor: InferTensor, dims: readonly number[] | undefined): InferTensor {
  const { shape } = tensor;
  if (dims === undefined || shape.length === dims.length) return tensor;
  if (shape.length === dims.length + 1 && shape[0] === 1) return { ...tensor, shape: shape.slice(1) };
  return shape.length === dims.length - 1 && dims[0] === 1 ? { ...tensor, shape: [1, ...shape] } : tensor;
}
