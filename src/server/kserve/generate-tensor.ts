import { datatypeOf } from '../../../callbacks/infer/datatypes.js';
import type { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig, ModelInput } from '../../../models/repository/model-config.js';
import { malformed } from '../../serving/infer-failure.js';
import { bytesOfJson } from './json-tensors.js';

/**
 * A field of a request as the tensor of that name. A scalar is one element, a list its elements; nested lists that have the input's
 * dimensions are its shape. For all else the input's fixed sizes are filled, then its innermost free one:
 *
 *   [-1]      "x" -> [1]    [1, 2, 3] -> [3]        [2, -1]   [1, 2, 3, 4] -> [2, 2]    [[1, 2, 3], [4, 5, 6]] -> [2, 3]
 *
 * Source: Triton's generate extension; the nested lists are this server's own.
 * @throws InferError for values of another type, or as many as no shape has
 */
export function fieldTensor(
  { max_batch_size: maxBatchSize }: Pick<ModelConfig, 'max_batch_size'>,
  input: ModelInput,
  value: unknown,
): InferTensor {
  const { name } = input;
  const datatype = datatypeOf(input.data_type);
  const nested = Array.isArray(value) ? value : [value];
  const values = nested.some(Array.isArray) ? nested.flat(Number.POSITIVE_INFINITY) : nested;
  const dims = maxBatchSize > 0 ? [-1, ...input.dims] : input.dims;
  const shape =
    nestedShape(nested, values.length, dims) ?? filledShape(values.length, dims, maxBatchSize > 0);
  if (shape === null) throw noShape(name);
  return { name, datatype, shape, data: bytesOfJson({ name, datatype, count: values.length }, values) };
}

/** The sizes of nested lists, where the input may have them; null: it may not, or they are of different lengths. */
function nestedShape(nested: readonly unknown[], count: number, dims: readonly number[]): number[] | null {
  const shape: number[] = [];
  for (let list: unknown = nested; Array.isArray(list) && shape.length <= dims.length; list = list[0]) {
    shape.push(list.length);
  }
  const fits =
    shape.length > 1 &&
    shape.length === dims.length &&
    shape.every((size, i) => dims[i] === -1 || dims[i] === size) &&
    shape.reduce((product, size) => product * size, 1) === count;
  return fits ? shape : null;
}

/** The input's sizes, with those that are free filled; null: so many elements have no shape. */
function filledShape(count: number, dims: readonly number[], isBatched: boolean): number[] | null {
  const fixed = dims.reduce((product, size) => (size === -1 ? product : product * size), 1);
  // Without elements the batch is one of nothing, which the model's configuration allows or not.
  if (count === 0) {
    const innermost = dims.lastIndexOf(-1);
    return dims.map((size, i) => (size === -1 ? (i === innermost && !(isBatched && i === 0) ? 0 : 1) : size));
  }
  if (count % fixed !== 0) return null;
  let left = count / fixed;
  const shape = [...dims];
  for (let i = shape.length - 1; i >= 0; i--) {
    if (shape[i] !== -1) continue;
    shape[i] = left;
    left = 1;
  }
  return left === 1 ? shape : null;
}

function noShape(name: string): InferError {
  return malformed(`The schema can not convert input '${name}' to tensor with proper shape`);
}
