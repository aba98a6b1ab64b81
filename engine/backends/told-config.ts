import type { DataType, ModelInput, ModelOutput } from '../../models/repository/model-config.js';
import type { ToldConfig } from './backend.js';

/** The batch size of a model that can take batches and whose configuration does not say how large: Triton's default too. */
const DEFAULT_BATCH_SIZE = 4;

/** An input or an output as the file of a model has it. */
export interface DescribedTensor {
  name: string;
  data_type: DataType;
  /** Whole, with the batch dimension where there is one; -1: any size. */
  shape: readonly number[];
}

export interface DescribedTensors {
  inputs: readonly DescribedTensor[];
  outputs: readonly DescribedTensor[];
}

/** The first dimension of every input and output is free. */
export function canBeBatched({ inputs, outputs }: DescribedTensors): boolean {
  return [...inputs, ...outputs].every(({ shape }) => shape[0] === -1);
}

/**
 * A configuration for what a file says: it takes batches where the first dimension of every input and output is free.
 * Source: Triton's auto-completed configurations of its ONNX Runtime and TensorFlow backends.
 * @param maxBatchSize as the author wrote it; undefined: not at all
 */
export function toldByTensors(tensors: DescribedTensors, maxBatchSize: number | undefined): ToldConfig {
  const told = maxBatchSize ?? (canBeBatched(tensors) ? DEFAULT_BATCH_SIZE : 0);
  const facts = ({ name, data_type, shape }: DescribedTensor) => {
    const own = told > 0 ? shape.slice(1) : [...shape];
    // A number for each row: clients are shown one of one element, as dims may not be empty.
    const shown = own.length === 0 ? { dims: [1], reshape: { shape: [] } } : { dims: own };
    return { name, data_type, ...shown, is_shape_tensor: false };
  };
  const { inputs, outputs } = tensors;
  return {
    max_batch_size: told,
    input: inputs.map(
      (tensor): ModelInput => ({ ...facts(tensor), allow_ragged_batch: false, optional: false }),
    ),
    output: outputs.map((tensor): ModelOutput => ({ ...facts(tensor), label_filename: '' })),
  };
}
