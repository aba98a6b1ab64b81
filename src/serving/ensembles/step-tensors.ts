import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';

/** A tensor between members. */
export interface PlacedTensor {
  readonly tensor: InferTensor;
  /** Rows, if its producer takes batches; else 0. */
  readonly batchSize: number;
}

/**
 * The tensor with `dims` after its rows, at most one of them -1. Its elements stay as they are.
 * @param rows 0: it has no batch dimension
 */
export function reshaped(
  tensor: InferTensor,
  dims: readonly number[] | undefined,
  rows: number,
): InferTensor {
  if (dims === undefined) return tensor;
  const elements = tensor.shape.reduce((product, size) => product * size, 1) / Math.max(1, rows);
  const known = dims.reduce((product, size) => (size < 0 ? product : product * size), 1);
  const whole = dims.map((size) => (size < 0 ? elements / known : size));
  return { ...tensor, shape: rows > 0 ? [rows, ...whole] : whole };
}

/** A tensor as the input of a member; what it holds is not copied. */
export function asInput(config: ModelConfig, name: string, { tensor, batchSize }: PlacedTensor): InferTensor {
  const { datatype, shape, data } = tensor;
  const dims = config.input.find((input) => input.name === name)?.dims ?? [];
  return { name, datatype, shape: shapeFor({ shape, batchSize }, dims, config.max_batch_size > 0), data };
}

/** A tensor as an output of the ensemble. @param number of the output in its configuration */
export function asOutput(
  { output, max_batch_size }: ModelConfig,
  number: number,
  { tensor, batchSize }: PlacedTensor,
): InferTensor {
  const { name, dims, reshape } = output[number]!;
  const { datatype, data } = tensor;
  const isBatched = max_batch_size > 0;
  const shape = shapeFor({ shape: tensor.shape, batchSize }, reshape?.shape ?? dims, isBatched);
  const told = { name, datatype, shape, data };
  return reshape === undefined ? told : reshaped(told, dims, isBatched ? (shape[0] ?? 0) : 0);
}

/** Rows of a request to a member; 0: the member takes no batches. */
export function rowsOf({ max_batch_size }: ModelConfig, inputs: readonly InferTensor[]): number {
  return max_batch_size > 0 ? (inputs[0]?.shape[0] ?? 1) : 0;
}

/** A tensor on its way between models. */
interface Shaped {
  readonly shape: readonly number[];
  /** Rows of the batch that its first dimension counts; 0: its producer takes no batches. */
  readonly batchSize: number;
}

/**
 * The shape in which a tensor is passed on, where one of two models takes batches and the other does not:
 *
 *   made by            taken as            [1, 4] or [4]  becomes
 *   one with batches   no batches, [4]     [1, 4]  ->  [4]
 *   one with batches   no batches, [1, 4]  [1, 4]              the batch is a dimension like others
 *   one without        batches of [4]      [4]     ->  [1, 4]
 *   one without        batches of [4]      [3, 4]              its first dimension is a batch
 *
 * The elements stay as they are. Source: Triton's ensemble scheduler.
 * @param dims of its consumer, without the batch dimension; -1: any size
 */
export function shapeFor(
  { shape, batchSize }: Shaped,
  dims: readonly number[],
  takesBatches: boolean,
): readonly number[] {
  if (takesBatches === batchSize > 0) return shape;
  const fits = shape.length === dims.length && shape.every((size, i) => dims[i] === -1 || dims[i] === size);
  if (takesBatches) return fits ? [1, ...shape] : shape;
  return !fits && batchSize === 1 ? shape.slice(1) : shape;
}
