import type { DataType, ModelInput, ModelOutput } from '../../../models/repository/model-config.js';
import type { ToldConfig } from '../backend.js';
import { BackendError } from '../backend-error.js';
import type { OnnxValue } from './onnx-runtime.js';
import { datatypeOfOnnx } from './onnx-tensors.js';

/** The batch size of a model that can take batches and whose configuration does not say how large: Triton's default too. */
const DEFAULT_BATCH_SIZE = 4;

/** Inputs and outputs as the file of a model has them. */
export interface OnnxValues {
  inputs: readonly OnnxValue[];
  outputs: readonly OnnxValue[];
}

/**
 * A configuration for what a file says: it takes batches where the first dimension of every input and output is free.
 * Source: Triton's auto-completed configuration of its ONNX Runtime backend.
 * @param maxBatchSize as the author wrote it; undefined: not at all
 * @throws BackendError for a value that is no tensor, or of a type that no client can send
 */
export function toldByOnnx({ inputs, outputs }: OnnxValues, maxBatchSize: number | undefined): ToldConfig {
  const isBatched = [...inputs, ...outputs].every(({ shape }) => shape.length > 0 && isFree(shape[0]!));
  const told = maxBatchSize ?? (isBatched ? DEFAULT_BATCH_SIZE : 0);
  const dims = ({ shape }: OnnxValue) =>
    (told > 0 ? shape.slice(1) : shape).map((size) => (isFree(size) ? -1 : (size as number)));
  const facts = (value: OnnxValue) => {
    const own = dims(value);
    // A number for each row: clients are shown one of one element, as dims may not be empty.
    const shown = own.length === 0 ? { dims: [1], reshape: { shape: [] } } : { dims: own };
    return { name: value.name, data_type: dataTypeOf(value), ...shown, is_shape_tensor: false };
  };
  return {
    max_batch_size: told,
    input: inputs.map(
      (value): ModelInput => ({ ...facts(value), allow_ragged_batch: false, optional: false }),
    ),
    output: outputs.map((value): ModelOutput => ({ ...facts(value), label_filename: '' })),
  };
}

const isFree = (size: number | string) => typeof size === 'string' || size < 0;

function dataTypeOf({ name, isTensor, type }: OnnxValue): DataType {
  const datatype = isTensor ? datatypeOfOnnx(type) : null;
  if (datatype === null) {
    const what = isTensor ? `of type ${type}` : 'no tensor';
    throw new BackendError(`'${name}' of the model is ${what}, which no client can send or read.`);
  }
  return datatype === 'BYTES' ? 'TYPE_STRING' : `TYPE_${datatype}`;
}
