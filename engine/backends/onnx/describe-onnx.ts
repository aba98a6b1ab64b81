import type { DataType } from '../../../models/repository/model-config.js';
import type { ToldConfig } from '../backend.js';
import { BackendError } from '../backend-error.js';
import { type DescribedTensor, toldByTensors } from '../told-config.js';
import type { OnnxValue } from './onnx-runtime.js';
import { datatypeOfOnnx } from './onnx-tensors.js';

/** Inputs and outputs as the file of a model has them. */
export interface OnnxValues {
  inputs: readonly OnnxValue[];
  outputs: readonly OnnxValue[];
}

/**
 * A configuration for what a file says.
 * @param maxBatchSize as the author wrote it; undefined: not at all
 * @throws BackendError for a value that is no tensor, or of a type that no client can send
 */
export function toldByOnnx({ inputs, outputs }: OnnxValues, maxBatchSize: number | undefined): ToldConfig {
  return toldByTensors({ inputs: inputs.map(described), outputs: outputs.map(described) }, maxBatchSize);
}

function described(value: OnnxValue): DescribedTensor {
  const shape = value.shape.map((size) => (typeof size === 'string' || size < 0 ? -1 : size));
  return { name: value.name, data_type: dataTypeOf(value), shape };
}

function dataTypeOf({ name, isTensor, type }: OnnxValue): DataType {
  const datatype = isTensor ? datatypeOfOnnx(type) : null;
  if (datatype === null) {
    const what = isTensor ? `of type ${type}` : 'no tensor';
    throw new BackendError(`'${name}' of the model is ${what}, which no client can send or read.`);
  }
  return datatype === 'BYTES' ? 'TYPE_STRING' : `TYPE_${datatype}`;
}
