import { elementsIn } from '../../../callbacks/infer/datatypes.js';
import type { InferParameters, InferResponse, InferTensor } from '../../../callbacks/infer/infer-types.js';
import type { InferModel } from '../../serving/infer-model.js';
import { jsonOfTensor } from './json-tensors.js';

/** Parameters of an answer besides its text, as an ensemble of TensorRT-LLM's backend returns them. */
const NO_SEQUENCE: InferParameters = { sequence_id: 0, sequence_start: false, sequence_end: false };

/**
 * A response as one object of JSON, in pieces between which others may have their turn: its tensors and parameters by their names, in the
 * order of these, a tensor of one element without its list. @param id '': the request has none
 */
export function* generateJson(
  { config, version, kind }: InferModel,
  id: string,
  { outputs, parameters }: InferResponse,
): Generator<string> {
  const fields = new Map<string, InferTensor | string>([
    ['model_name', JSON.stringify(config.name)],
    ['model_version', JSON.stringify(version)],
  ]);
  if (id !== '') fields.set('id', JSON.stringify(id));
  const told = parameters ?? (kind === 'generator' ? NO_SEQUENCE : {});
  for (const [name, value] of Object.entries(told)) fields.set(name, textOf(value));
  for (const output of outputs) fields.set(output.name, output);
  let separator = '{';
  for (const name of [...fields.keys()].sort()) {
    const value = fields.get(name)!;
    yield `${separator}${JSON.stringify(name)}:`;
    separator = ',';
    if (typeof value === 'string') yield value;
    else yield* elementsOf(value);
  }
  yield '}';
}

const textOf = (value: InferParameters[string]) =>
  typeof value === 'bigint' ? String(value) : JSON.stringify(value);

function* elementsOf(tensor: InferTensor): Generator<string> {
  if (elementsIn(tensor.shape) !== 1) {
    yield* jsonOfTensor(tensor);
    return;
  }
  // A text may be long, and come in pieces.
  let isFirst = true;
  let last = '';
  for (const piece of jsonOfTensor(tensor)) {
    if (last !== '') yield last;
    last = isFirst ? piece.slice(1) : piece;
    isFirst = false;
  }
  yield last.slice(0, -1);
}
