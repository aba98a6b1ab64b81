import { listTensors } from '../../../models/repository/batch-tensors.js';
import type {
  DataType,
  ModelConfig,
  ModelInput,
  ModelOutput,
} from '../../../models/repository/model-config.js';
import { BackendError, type ToldConfig } from '../backend.js';
import type { SavedSignature, SavedTensor } from './saved-model-file.js';
import { INPUT_TYPES, inputType, nameOfType, OUTPUT_TYPES, outputType } from './tensorflow-types.js';

type Written = Partial<
  Pick<ModelConfig, 'input' | 'output' | 'max_batch_size' | 'batch_input' | 'batch_output'>
>;

/**
 * A configuration for what a signature says. Sizes of a tensor whose number of dimensions is open are those that the author wrote.
 * @param config as the author wrote it
 * @throws BackendError for a tensor of a type that does not cross, or of no known number of dimensions
 */
export function toldBySignature(signature: SavedSignature, config: Written): ToldConfig {
  const { max_batch_size: written } = config;
  const tensors = {
    inputs: signature.inputs.map((one) => described(one, 'input', config)),
    outputs: signature.outputs.map((one) => described(one, 'output', config)),
  };
  const isBatched = canBeBatched(tensors);
  if (written !== undefined && written > 0 && !isBatched) {
    const [wrong] = [...tensors.inputs, ...tensors.outputs].filter(({ shape }) => shape[0] !== -1);
    throw new BackendError(
      `max_batch_size is ${written}, but '${wrong!.name}' of the signature has the shape [${wrong!.shape}]: for batches its first size has to be -1.`,
    );
  }
  return toldByTensors(tensors, written ?? (isBatched && hasWholeDims(signature, config) ? 0 : undefined));
}

function described(tensor: SavedTensor, kind: 'input' | 'output', config: Written): DescribedTensor {
  const { name, tensor: node, dtype } = tensor;
  if (node === null) {
    throw new BackendError(
      `The ${kind} '${name}' of the signature is no plain tensor, but sparse or composite.`,
    );
  }
  const datatype = kind === 'input' ? (inputType(dtype)?.datatype ?? null) : outputType(dtype);
  if (datatype === null) {
    const known = kind === 'input' ? INPUT_TYPES : OUTPUT_TYPES;
    throw new BackendError(
      `The ${kind} '${name}' of the signature is of type ${nameOfType(dtype)}; ${kind}s of ${known} can be passed to TensorFlow here, so the signature has to convert it (tf.cast).`,
    );
  }
  const data_type: DataType = datatype === 'BYTES' ? 'TYPE_STRING' : `TYPE_${datatype}`;
  return { name, data_type, shape: tensor.shape ?? shapeOfAuthor(tensor, kind, config) };
}

/** The whole shape of a tensor that may have any, as the configuration has it. */
function shapeOfAuthor({ name }: SavedTensor, kind: 'input' | 'output', config: Written): number[] {
  if (listTensors(config).has(name)) return [-1];
  const dims = dimsOf(config[kind], name);
  if (dims === null) {
    throw new BackendError(
      `The ${kind} '${name}' of the signature may have any number of dimensions: a configuration has to say its dims.`,
    );
  }
  return (config.max_batch_size ?? 0) > 0 ? [-1, ...dims] : [...dims];
}

/** The author has written the batch's dimension among the dims of some tensor: the model is meant to take no batches. */
function hasWholeDims({ inputs, outputs }: SavedSignature, config: Written): boolean {
  const isWhole = (kind: 'input' | 'output') => (tensor: SavedTensor) =>
    tensor.shape !== null && dimsOf(config[kind], tensor.name)?.length === tensor.shape.length;
  return inputs.some(isWhole('input')) || outputs.some(isWhole('output'));
}

function dimsOf(tensors: Written['input'] | Written['output'], name: string): readonly number[] | null {
  const found = tensors?.find((one) => one.name === name);
  return found === undefined ? null : (found.reshape?.shape ?? found.dims ?? []);
}

/** The batch size of a model that can take batches and whose configuration does not say how large: Triton's default too. */
const DEFAULT_BATCH_SIZE = 4;

/** An input or an output as the file of a model has it. */
interface DescribedTensor {
  name: string;
  data_type: DataType;
  /** Whole, with the batch dimension where there is one; -1: any size. */
  shape: readonly number[];
}

interface DescribedTensors {
  inputs: readonly DescribedTensor[];
  outputs: readonly DescribedTensor[];
}

/** The first dimension of every input and output is free. */
function canBeBatched({ inputs, outputs }: DescribedTensors): boolean {
  return [...inputs, ...outputs].every(({ shape }) => shape[0] === -1);
}

/**
 * A configuration for what a file says: it takes batches where the first dimension of every input and output is free.
 * Source: Triton's auto-completed configurations of its ONNX Runtime and TensorFlow backends.
 * @param maxBatchSize as the author wrote it; undefined: not at all
 */
function toldByTensors(tensors: DescribedTensors, maxBatchSize: number | undefined): ToldConfig {
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
