import { closestName } from '../../../base/did-you-mean.js';
import { packElements } from '../../../callbacks/infer/byte-elements.js';
import { datatypeOf } from '../../../callbacks/infer/datatypes.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferParameters, InferRequest, InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { ModelConfig, ModelInput } from '../../../models/repository/model-config.js';

/** Parameters of a model that generates text which are not inputs. */
export const TEXT_PARAMETERS: readonly string[] = ['lora_name'];

type Value = InferParameters[string];

/**
 * The request with the parameters that have the name of an input as that input: clients write `max_tokens` in
 * either place. Unknown ones are refused, so that a misspelling never goes unnoticed.
 *
 *   {"parameters": {"max_tokens": 8, "lora_name": "a"}}  ->  max_tokens [1] = 8, and the parameter lora_name
 *
 * @param known parameters that are no inputs @throws InferError
 */
export function withParameterInputs(
  config: Pick<ModelConfig, 'name' | 'input' | 'max_batch_size'>,
  request: InferRequest,
  known: readonly string[],
): InferRequest {
  const names = Object.keys(request.parameters);
  if (names.every((name) => known.includes(name))) return request;
  const inputs = [...request.inputs];
  for (const name of names) {
    if (known.includes(name)) continue;
    const input = config.input.find((one) => one.name === name);
    if (input === undefined) throw unknown(config, name, known);
    if (inputs.some((one) => one.name === name))
      throw refused(`'${name}' is given as an input and as a parameter; one of them is expected`);
    inputs.push(tensorOf(input, request.parameters[name]!, config.max_batch_size > 0));
  }
  const kept = names.filter((name) => known.includes(name)).map((name) => [name, request.parameters[name]!]);
  return { ...request, inputs, parameters: Object.fromEntries(kept) };
}

const refused = (message: string) => new InferError(message, 'invalid');

function unknown(
  { name: model, input }: Pick<ModelConfig, 'name' | 'input'>,
  name: string,
  known: readonly string[],
): InferError {
  const meant = closestName(name, [...input.map((one) => one.name), ...known]);
  const hint = meant === null ? '' : `; did you mean '${meant}'?`;
  return refused(`'${name.slice(0, 64)}' is no parameter that model '${model}' takes${hint}`);
}

function tensorOf({ name, data_type, dims }: ModelInput, value: Value, isBatched: boolean): InferTensor {
  const datatype = datatypeOf(data_type);
  const isOfOne = dims.every((size) => size === 1 || size === -1) && dims.length === 1;
  // True and false are 1 and 0 for early_stopping alone, as in the generate extension.
  const isOfType = name === 'early_stopping' || datatype !== 'INT32' || typeof value !== 'boolean';
  const data = isOfOne && isOfType ? bytesOf(datatype, value) : null;
  if (data !== null) return { name, datatype, shape: isBatched ? [1, 1] : [1], data };
  const expected = isOfOne ? `one element of ${datatype} is expected` : 'it is taken as an input alone';
  throw refused(`parameter '${name}' is ${shown(value)}; ${expected}`);
}

const shown = (value: Value) => (typeof value === 'string' ? `'${value.slice(0, 64)}'` : String(value));

/** The element, little-endian; null: the value is of another type, or beyond it. */
function bytesOf(datatype: string, value: Value): Uint8Array | null {
  const view = new DataView(new ArrayBuffer(8));
  const first = (bytes: number) => new Uint8Array(view.buffer, 0, bytes);
  switch (datatype) {
    case 'BYTES':
      return typeof value === 'string' ? packElements([value]) : null;
    case 'BOOL':
      return typeof value === 'boolean' ? Uint8Array.of(Number(value)) : null;
    case 'FP32':
      if (typeof value !== 'number' && typeof value !== 'bigint') return null;
      view.setFloat32(0, Number(value), true);
      return first(4);
    case 'INT32':
      if (typeof value === 'string' || !Number.isInteger(Number(value))) return null;
      view.setInt32(0, Number(value), true);
      return view.getInt32(0, true) === Number(value) ? first(4) : null;
    case 'UINT64': {
      if (typeof value !== 'bigint' && !(typeof value === 'number' && Number.isSafeInteger(value)))
        return null;
      view.setBigUint64(0, BigInt(value), true);
      return view.getBigUint64(0, true) === BigInt(value) ? first(8) : null;
    }
    default:
      return null;
  }
}
