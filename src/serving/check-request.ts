import { BYTES_PER_ELEMENT, datatypeOf, elementsIn } from '../../callbacks/infer/datatypes.js';
import { InferError } from '../../callbacks/infer/infer-error.js';
import type { InferRequest, InferTensor } from '../../callbacks/infer/infer-types.js';
import type { ModelConfig, ModelInput } from '../../models/repository/model-config.js';

/** A request that fits the model. */
export interface CheckedRequest {
  /** Tensors in the order of the configuration's inputs; optional ones that were not given are left out. */
  inputs: readonly InferTensor[];
  /** Rows of the request; 1 for a model that takes no batches. */
  batchSize: number;
}

/**
 * Holds a request against the configuration: names, types, shapes, the batch's size, and that the data is as long as the shape
 * says. Words are Triton's, which clients know. @throws InferError invalid
 */
export function checkedRequest(config: ModelConfig, request: InferRequest): CheckedRequest {
  const given = new Map<string, InferTensor>();
  for (const input of request.inputs) {
    if (given.has(input.name)) {
      throw refused(request, `input '${input.name}' already exists in request`);
    }
    given.set(input.name, input);
  }
  checkNames(config, request, given);
  checkOutputs(config, request);
  let batchSize: number | null = null;
  const inputs: InferTensor[] = [];
  for (const input of config.input) {
    const tensor = given.get(input.name);
    if (tensor === undefined) continue;
    const rows = checkInput(config, input, tensor, request);
    if (batchSize !== null && rows !== batchSize) {
      throw refused(
        request,
        `input '${input.name}' batch size does not match other inputs for '${config.name}'`,
      );
    }
    batchSize = rows;
    inputs.push(tensor);
  }
  return { inputs, batchSize: batchSize ?? 1 };
}

function checkNames(
  { name, input: inputs }: ModelConfig,
  request: InferRequest,
  given: ReadonlyMap<string, InferTensor>,
): void {
  const known = new Set(inputs.map((input) => input.name));
  for (const input of given.keys()) {
    if (known.has(input)) continue;
    const there = thereAre('inputs', inputs);
    throw new InferError(`unexpected inference input '${input}' for model '${name}'; ${there}`, 'invalid');
  }
  const missing = inputs.filter((input) => !input.optional && !given.has(input.name));
  if (missing.length === 0) return;
  const names = (list: Iterable<string>) => [...list].map((one) => `'${one}'`).join(',');
  const isExact = inputs.every(({ optional }) => !optional);
  const expected = isExact
    ? String(inputs.length)
    : `at least ${inputs.filter(({ optional }) => !optional).length}`;
  throw refused(
    request,
    `expected ${expected} inputs but got ${given.size} inputs for model '${name}'. Got input(s) [${names(given.keys())}], but missing required input(s) [${names(missing.map((input) => input.name))}]. Please provide all required input(s).`,
  );
}

function checkOutputs({ name, output }: ModelConfig, request: InferRequest): void {
  for (const wanted of request.outputs ?? []) {
    if (output.some((one) => one.name === wanted)) continue;
    const there = thereAre('outputs', output);
    throw new InferError(`unexpected inference output '${wanted}' for model '${name}'; ${there}`, 'invalid');
  }
}

/** Tensors that an error names. */
const MAX_NAMES = 20;

function thereAre(what: string, tensors: readonly { name: string }[]): string {
  const names = tensors.slice(0, MAX_NAMES).map(({ name }) => `'${name}'`);
  const more = tensors.length - names.length;
  return `its ${what} are ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Added to the refusal of a shape by a model that takes batches. */
const BATCH_NOTE =
  'NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.';

/** The rows of an input that fits. */
function checkInput(
  config: ModelConfig,
  input: ModelInput,
  tensor: InferTensor,
  request: InferRequest,
): number {
  const { name, max_batch_size: maxBatchSize } = config;
  const { shape, datatype } = tensor;
  const expected = datatypeOf(input.data_type);
  if (datatype !== expected) {
    throw refused(
      request,
      `inference input '${input.name}' data-type is '${datatype}', but model '${name}' expects '${expected}'`,
    );
  }
  const isBatched = maxBatchSize > 0;
  const dims = isBatched ? [-1, ...input.dims] : input.dims;
  const fits = shape.length === dims.length && shape.every((size, i) => dims[i] === -1 || dims[i] === size);
  if (!fits) {
    throw refused(
      request,
      `unexpected shape for input '${input.name}' for model '${name}'. Expected ${shapeText(dims)}, got ${shapeText(shape)}. ${isBatched ? BATCH_NOTE : ''}`,
    );
  }
  const rows = isBatched ? shape[0]! : 1;
  if (rows === 0) {
    // Kernels divide by the rows, or look at the first one.
    const found = `input '${input.name}' has a batch of 0 rows`;
    throw refused(request, `inference request batch-size must be >= 1 for '${name}': ${found}`);
  }
  if (isBatched && rows > maxBatchSize) {
    throw refused(request, `inference request batch-size must be <= ${maxBatchSize} for '${name}'`);
  }
  checkBytes(tensor, name, request);
  return rows;
}

function checkBytes(tensor: InferTensor, model: string, request: InferRequest): void {
  const { name, datatype, shape, data } = tensor;
  const size = BYTES_PER_ELEMENT[datatype];
  if (size === null) {
    checkTexts(tensor, model, (message) => refused(request, message));
    return;
  }
  const expected = size * elementsIn(shape);
  if (data.length === expected) return;
  throw refused(
    request,
    `input byte size mismatch for input '${name}' for model '${model}'. Expected ${expected}, got ${data.length}`,
  );
}

function refused({ id }: InferRequest, message: string): InferError {
  return new InferError(`[request id: ${id === '' ? '<id_unknown>' : id}] ${message}`, 'invalid');
}

const shapeText = (shape: readonly number[]) => `[${shape.join(',')}]`;

const LENGTH_BYTES = 4;

/**
 * Checks the data of a BYTES tensor against its shape: a length and as many bytes for each element, and
 * nothing after them. The words are Triton's.
 * @param refused makes a refusal that names the request @throws InferError
 */
function checkTexts(
  { name, shape, data }: InferTensor,
  model: string,
  refused: (message: string) => InferError,
): void {
  const elements = elementsIn(shape);
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let found = 0;
  for (let offset = 0; offset < data.length; found++) {
    const left = data.length - offset - LENGTH_BYTES;
    if (found === elements) {
      throw refused(
        `unexpected number of string elements ${found + 1} for inference input '${name}' for model '${model}', expecting ${elements}`,
      );
    }
    if (left < 0) {
      throw refused(
        `incomplete string length indicator for inference input '${name}' for model '${model}', expecting ${LENGTH_BYTES} bytes but only ${data.length - offset} bytes available. Please make sure the string length indicator is in one buffer.`,
      );
    }
    const length = view.getUint32(offset, true);
    if (length > left) {
      throw new InferError(
        `incomplete string data for inference input '${name}', expecting string of length ${length} but only ${left} bytes available`,
        'invalid',
      );
    }
    offset += LENGTH_BYTES + length;
  }
  if (found === elements) return;
  throw refused(
    `expected ${elements} string elements for inference input '${name}' for model '${model}', got ${found}`,
  );
}
