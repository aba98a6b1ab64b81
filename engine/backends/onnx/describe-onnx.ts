import type { Datatype } from '../../../callbacks/infer/datatypes.js';
import { listTensors } from '../../../models/repository/batch-tensors.js';
import type {
  DataType,
  ModelConfig,
  ModelInput,
  ModelOutput,
} from '../../../models/repository/model-config.js';
import { ModelConfigError } from '../../../models/repository/model-config-error.js';
import { BackendError, type ToldConfig } from '../backend.js';
import type { OnnxFileValue, OnnxFileValues } from './onnx-file.js';
import type { OnnxMetadata, OnnxSession } from './onnx-runtime.js';
import { datatypeOfOnnx } from './onnx-tensors.js';

/** The batch size of a model that can take batches and whose configuration does not say how large: Triton's default too. */
const DEFAULT_BATCH_SIZE = 4;

/** An input or output, as ONNX Runtime and the model's file together tell it. */
export interface OnnxValue {
  readonly name: string;
  /** As ONNX Runtime writes types: `tensor(float)`, `seq(map(string,tensor(float)))`. */
  readonly type: string;
  /** The protocol's type of its elements; null: it is nothing that a client can send or read. */
  readonly datatype: Datatype | null;
  /** Sizes; a text is a free one. Null: the number of dimensions is not known. */
  readonly shape: readonly (number | string)[] | null;
}

/** Inputs and outputs of a model. */
export interface OnnxValues {
  inputs: readonly OnnxValue[];
  outputs: readonly OnnxValue[];
}

type Kind = 'input' | 'output';

/** What a session reports, and what the file says of the rest. */
export function describedValues(
  { inputMetadata, outputMetadata }: Pick<OnnxSession, 'inputMetadata' | 'outputMetadata'>,
  file: OnnxFileValues,
): OnnxValues {
  return {
    inputs: inputMetadata.map((value) => described(value, file.inputs)),
    outputs: outputMetadata.map((value) => described(value, file.outputs)),
  };
}

function described(
  { name, isTensor, type = '', shape = [] }: OnnxMetadata,
  file: readonly OnnxFileValue[],
): OnnxValue {
  const written = file.find((value) => value.name === name);
  const known = written?.type ?? (isTensor ? `tensor(${type})` : 'no tensor');
  if (!isTensor) return { name, type: known, datatype: null, shape: null };
  // A single number and a tensor of any rank look alike here.
  const hasRank = shape.length > 0 || written?.hasRank !== false;
  return { name, type: known, datatype: datatypeOfOnnx(type), shape: hasRank ? [...shape] : null };
}

/** Elements that ONNX Runtime for Node.js takes, as it writes them. */
const TAKEN = [
  'tensor(bool)',
  'tensor(int8)',
  'tensor(int16)',
  'tensor(int32)',
  'tensor(int64)',
  'tensor(uint8)',
  'tensor(uint16)',
  'tensor(uint32)',
  'tensor(uint64)',
  'tensor(float16)',
  'tensor(float)',
  'tensor(double)',
  'tensor(string)',
];

/** Why no session can be opened for a file, where that is a tensor's type; null: it is something else. */
export function typeProblem({ inputs, outputs }: OnnxFileValues): string | null {
  for (const [kind, values] of [
    ['input', inputs],
    ['output', outputs],
  ] as const) {
    const wrong = values.find(({ type }) => type.startsWith('tensor(') && !TAKEN.includes(type));
    if (wrong !== undefined) return wrongType(kind, wrong);
  }
  return null;
}

function wrongType(kind: Kind, { name, type }: Pick<OnnxValue, 'name' | 'type'>): string {
  const taken = 'tensors of bool, whole numbers of 8 to 64 bits, float16, float, double and string are taken';
  return `its ${kind} '${name}' is ${type}; ${taken}`;
}

/**
 * A configuration for what a file says: it takes batches where the first dimension of every input and output is free.
 * Source: Triton's auto-completed configuration of its ONNX Runtime backend.
 * @param config as the author wrote it
 * @throws BackendError for what no client can send or read; ModelConfigError with its field where the author has to say more, or something else
 */
export function toldByOnnx({ inputs, outputs }: OnnxValues, config: Partial<ModelConfig>): ToldConfig {
  const { max_batch_size: written, output: listed } = config;
  const isServed = ({ name }: OnnxValue) => listed === undefined || listed.some((one) => one.name === name);
  const served = outputs.filter(isServed);
  const isBatched = [...inputs, ...served].every(({ shape }) => isFree(shape?.[0]));
  const maxBatchSize = written ?? (isBatched ? DEFAULT_BATCH_SIZE : 0);
  const lists = listTensors(config);
  const factsOf = (kind: Kind, value: OnnxValue) => {
    if (value.datatype === null) {
      const way = kind === 'output' ? '; a configuration that lists the other outputs serves these' : '';
      throw new BackendError(wrongType(kind, value) + way);
    }
    const authors = config[kind]?.find(({ name }) => name === value.name);
    const shape = value.shape ?? (lists.has(value.name) ? [-1] : null);
    const dims = shownDims(kind, { ...value, shape }, maxBatchSize, authors);
    return { name: value.name, data_type: dataTypeOf(value.datatype), ...dims, is_shape_tensor: false };
  };
  return {
    max_batch_size: maxBatchSize,
    input: inputs.map(
      (value): ModelInput => ({
        ...factsOf('input', value),
        allow_ragged_batch: false,
        optional: false,
      }),
    ),
    output: outputs.map(
      (value): ModelOutput => ({
        ...(isServed(value) ? factsOf('output', value) : leftOut(value)),
        label_filename: '',
      }),
    ),
  };
}

const dataTypeOf = (datatype: Datatype): DataType =>
  datatype === 'BYTES' ? 'TYPE_STRING' : `TYPE_${datatype}`;

/** An output that the author does not list and no client asks for: only its name counts. */
const leftOut = ({ name }: OnnxValue) => ({
  name,
  data_type: 'TYPE_INVALID' as DataType,
  dims: [],
  is_shape_tensor: false,
});

/** @param authors what the author wrote of it */
function shownDims(
  kind: Kind,
  { name, shape }: OnnxValue,
  maxBatchSize: number,
  authors: Partial<ModelInput> | undefined,
): Pick<ModelInput, 'dims' | 'reshape'> {
  if (shape === null) {
    const { dims = [], reshape } = authors ?? {};
    if (dims.length > 0) return { dims, ...(reshape && { reshape }) };
    throw new ModelConfigError(
      `lacks dims for '${name}', of which the model's file does not say how many dimensions it has.`,
      { path: [kind] },
    );
  }
  if (maxBatchSize > 0 && !isFree(shape[0])) {
    throw new ModelConfigError(
      `is ${maxBatchSize}, but tensor '${name}': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is [${shape.map(sizeOf)}]`,
      { path: ['max_batch_size'] },
    );
  }
  const own = (maxBatchSize > 0 ? shape.slice(1) : shape).map(sizeOf);
  // A number for each row: clients are shown one of one element, as dims may not be empty.
  return own.length === 0 ? { dims: [1], reshape: { shape: [] } } : { dims: own };
}

const isFree = (size: number | string | undefined) =>
  typeof size === 'string' || (size !== undefined && size < 0);

const sizeOf = (size: number | string) => (isFree(size) ? -1 : (size as number));
