import { BYTES_PER_ELEMENT, datatypeOf } from '../../../callbacks/infer/datatypes.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import { malformed } from '../../serving/infer-failure.js';
import type { ReadInfer } from './read-infer.js';

/**
 * Reads a body that is the model's one input and nothing else: one row of it, whose open dimension is as long as the body says. Every
 * output is answered as binary data. Source: the raw binary request of Triton's binary data extension.
 * @throws InferError for a model with several inputs, or whose shape the body does not say
 */
export function readRawInput(config: ModelConfig, body: Uint8Array, signal: AbortSignal): ReadInfer {
  const { name, input: inputs, max_batch_size } = config;
  const [input] = inputs;
  if (input === undefined || inputs.length > 1) {
    throw refused(
      `Raw request must only have 1 input (found 1) to be deduced but got ${inputs.length} inputs in '${name}' model configuration`,
    );
  }
  const datatype = datatypeOf(input.data_type);
  const size = BYTES_PER_ELEMENT[datatype];
  const open = input.dims.filter((dim) => dim < 0).length;
  const known = input.dims.reduce((product, dim) => (dim < 0 ? product : product * dim), 1);
  if (size === null) {
    if (open > 0 || known !== 1) {
      throw refused(`For BYTE datatype raw input '${input.name}', the model must have input shape [1]`);
    }
  } else if (open > 1) {
    throw refused(
      `The shape of the raw input '${input.name}' can not be deduced because there are more than one variable-sized dimension`,
    );
  }
  const rest = size === null || known === 0 ? 0 : Math.floor(body.length / (known * size));
  const dims = input.dims.map((dim) => (dim < 0 ? rest : dim));
  const shape = max_batch_size > 0 ? [1, ...dims] : dims;
  const data = size === null ? withLength(body) : body;
  const expected = size === null ? data.length : dims.reduce((product, dim) => product * dim, size);
  if (expected !== data.length) {
    throw refused(
      `input byte size mismatch for input 'raw_input' for model '${name}'. Expected ${expected}, got ${data.length}`,
    );
  }
  const request = {
    id: '',
    inputs: [{ name: input.name, datatype, shape, data }],
    outputs: null,
    parameters: {},
    sequence: null,
    priority: 0,
    timeoutUs: 0,
    signal,
  };
  return { request, wishes: null, isBinary: true, unread: [], shared: [] };
}

/** A text as an element of BYTES. */
function withLength(text: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(4 + text.length);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 4);
  return bytes;
}

const refused = (message: string) => malformed(`[request id: <id_unknown>] ${message}`);
