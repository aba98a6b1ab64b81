import { countElements } from '../../callbacks/infer/byte-elements.js';
import { BYTES_PER_ELEMENT, type Datatype, datatypeOf, elementsIn } from '../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../callbacks/infer/infer-types.js';
import type { ModelConfig, ModelOutput } from '../../models/repository/model-config.js';

/**
 * How an answer of a model's code differs from its configuration; null: not at all.
 * @param batchSize rows of the request
 */
export function whyNotOutput(
  { output, max_batch_size: maxBatchSize, model_transaction_policy: { decoupled } }: ModelConfig,
  { name, datatype, shape, data }: InferTensor,
  batchSize: number,
): string | null {
  const known = output.find((one) => one.name === name);
  if (known === undefined) return `'${name}' is no output of the model; it has ${namesOf(output)}`;
  const rows = maxBatchSize > 0 ? [decoupled ? -1 : batchSize] : [];
  return whyNotTensor({ name, datatype, shape, data }, datatypeOf(known.data_type), [...rows, ...known.dims]);
}

/** What is wrong with an output besides its type and its sizes, of which -1 is any; null: nothing. */
export function whyNotTensor(
  { name, datatype, shape, data }: InferTensor,
  expected: Datatype,
  dims: readonly number[],
): string | null {
  if (datatype !== expected) return `output '${name}' has the datatype ${datatype}; ${expected} is expected`;
  const fits = shape.length === dims.length && shape.every((size, i) => isSize(size) && isOf(dims[i]!, size));
  if (!fits) return `output '${name}' has the shape [${shape}]; [${dims}] is expected`;
  return whyNotData({ name, datatype, data }, elementsIn(shape));
}

/**
 * What an answer leaves out of what was asked for; null: nothing. Each answer of a decoupled model may have some of the outputs.
 * @param wanted names of outputs; null: all of the model's
 */
export function whyNotWhole(
  { output, model_transaction_policy: { decoupled } }: ModelConfig,
  given: readonly InferTensor[],
  wanted: readonly string[] | null,
): string | null {
  if (decoupled) return null;
  const names = wanted ?? output.map(({ name }) => name);
  const missing = names.find((name) => !given.some((one) => one.name === name));
  return missing === undefined ? null : `output '${missing}' was asked for and is not in it`;
}

function whyNotData(
  { name, datatype, data }: Pick<InferTensor, 'name' | 'datatype' | 'data'>,
  elements: number,
): string | null {
  const size = BYTES_PER_ELEMENT[datatype];
  if (size !== null) {
    if (data.length === elements * size) return null;
    return `output '${name}' has ${data.length} bytes; its shape takes ${elements * size}`;
  }
  const found = countElements(data);
  if (found === elements) return null;
  return found === null
    ? `output '${name}' ends in the middle of an element`
    : `output '${name}' has ${found} elements; its shape takes ${elements}`;
}

const isSize = (size: number) => Number.isSafeInteger(size) && size >= 0;
const isOf = (dim: number, size: number) => dim === -1 || dim === size;
const namesOf = (outputs: readonly ModelOutput[]) => outputs.map(({ name }) => `'${name}'`).join(', ');
