import {
  LONGEST_NAME,
  MAX_DIMS,
  MAX_PARAMETERS,
  MAX_TENSORS,
} from '../../../../callbacks/infer/request-limits.js';
import { malformed } from '../../../serving/infer-failure.js';
import { FieldBudget, WireReader } from './wire-reader.js';

/** A parameter, by which of its fields is set; null: none is. */
export type MessageParameter =
  | { kind: 'bool'; value: boolean }
  | { kind: 'int64' | 'uint64'; value: number | bigint }
  | { kind: 'double'; value: number }
  | { kind: 'string'; value: string }
  | { kind: 'bytes'; value: Uint8Array }
  | { kind: null; value: null };

export type MessageParameters = ReadonlyMap<string, MessageParameter>;

/** An input, as it is written. */
export interface MessageInput {
  name: string;
  datatype: string;
  shape: readonly (number | bigint)[];
  parameters: MessageParameters;
  /** Elements by their types, to be read; null: it has none. */
  contents: Uint8Array | null;
}

export interface MessageOutput {
  name: string;
  parameters: MessageParameters;
}

/** A ModelInferRequest, whose tensors lie in the message's bytes. */
export interface InferMessage {
  model: string;
  version: string;
  id: string;
  parameters: MessageParameters;
  inputs: readonly MessageInput[];
  outputs: readonly MessageOutput[];
  raw: readonly Uint8Array[];
}

const NONE: MessageParameters = new Map();

/**
 * Reads a request, but for the elements of its tensors.
 * @throws InferError, GrpcError for bytes that are no request, and for more than is taken
 */
export function readInferMessage(bytes: Uint8Array): InferMessage {
  const reader = new WireReader(bytes, new FieldBudget());
  const inputs: MessageInput[] = [];
  const outputs: MessageOutput[] = [];
  const raw: Uint8Array[] = [];
  const parameters = new Map<string, MessageParameter>();
  let [model, version, id] = ['', '', ''];
  while (reader.next()) {
    if (reader.field === 1) model = reader.text(LONGEST_NAME, 'model_name');
    else if (reader.field === 2) version = reader.text(LONGEST_NAME, 'model_version');
    else if (reader.field === 3) id = reader.text(LONGEST_NAME, 'id');
    else if (reader.field === 4) addParameter(parameters, reader.message(), INFER_KINDS);
    else if (reader.field === 5) inputs.push(readInput(within(inputs, 'inputs', reader.message())));
    else if (reader.field === 6) outputs.push(readOutput(within(outputs, 'outputs', reader.message())));
    else if (reader.field === 7) raw.push(within(raw, 'raw_input_contents', reader.bytes()));
    else reader.skip();
  }
  return { model, version, id, parameters, inputs, outputs, raw };
}

/** The next of a list. @throws InferError where that has too many */
function within<T>(list: readonly unknown[], name: string, next: T): T {
  if (list.length < MAX_TENSORS) return next;
  throw malformed(`the request has more than ${MAX_TENSORS} ${name}, which is the limit`);
}

function readInput(reader: WireReader): MessageInput {
  const shape: (number | bigint)[] = [];
  const input = { name: '', datatype: '', shape, parameters: NONE, contents: null as Uint8Array | null };
  let parameters: Map<string, MessageParameter> | null = null;
  while (reader.next()) {
    if (reader.field === 1) input.name = reader.text(LONGEST_NAME, 'the name of an input');
    else if (reader.field === 2) input.datatype = reader.text(LONGEST_NAME, 'the datatype of an input');
    else if (reader.field === 3) {
      reader.signedNumbers(shape, MAX_DIMS);
      if (shape.length > MAX_DIMS) {
        throw malformed(
          `the shape of input '${input.name}' has more than ${MAX_DIMS} sizes, which is the limit`,
        );
      }
    } else if (reader.field === 4) {
      parameters ??= new Map();
      addParameter(parameters, reader.message(), INFER_KINDS);
    } else if (reader.field === 5) input.contents = reader.bytes();
    else reader.skip();
  }
  return { ...input, parameters: parameters ?? NONE };
}

function readOutput(reader: WireReader): MessageOutput {
  let name = '';
  let parameters: Map<string, MessageParameter> | null = null;
  while (reader.next()) {
    if (reader.field === 1) name = reader.text(LONGEST_NAME, 'the name of an output');
    else if (reader.field === 2) {
      parameters ??= new Map();
      addParameter(parameters, reader.message(), INFER_KINDS);
    } else reader.skip();
  }
  return { name, parameters: parameters ?? NONE };
}

/** Kinds of the fields of a parameter, by their numbers. */
type Kinds = readonly (MessageParameter['kind'] | undefined)[];
const INFER_KINDS: Kinds = [undefined, 'bool', 'int64', 'string', 'double', 'uint64'];
export const REPOSITORY_KINDS: Kinds = [undefined, 'bool', 'int64', 'string', 'bytes'];

/** Reads an entry of a map of parameters. @throws InferError, GrpcError */
export function addParameter(
  parameters: Map<string, MessageParameter>,
  reader: WireReader,
  kinds: Kinds,
): void {
  let name = '';
  let parameter: MessageParameter = { kind: null, value: null };
  while (reader.next()) {
    if (reader.field === 1) name = reader.text(LONGEST_NAME, 'the name of a parameter');
    else if (reader.field === 2) parameter = readParameter(reader.message(), kinds);
    else reader.skip();
  }
  parameters.set(name, parameter);
  if (parameters.size > MAX_PARAMETERS) {
    throw malformed(`there are more than ${MAX_PARAMETERS} parameters, which is the limit`);
  }
}

function readParameter(reader: WireReader, kinds: Kinds): MessageParameter {
  let parameter: MessageParameter = { kind: null, value: null };
  while (reader.next()) {
    const kind = kinds[reader.field];
    if (kind === 'bool') parameter = { kind, value: reader.isTrue() };
    else if (kind === 'int64') parameter = { kind, value: reader.signed() };
    else if (kind === 'uint64') parameter = { kind, value: reader.unsigned() };
    else if (kind === 'double') parameter = { kind, value: reader.double() };
    else if (kind === 'string')
      parameter = { kind, value: reader.text(Number.POSITIVE_INFINITY, 'a parameter') };
    else if (kind === 'bytes') parameter = { kind, value: reader.bytes() };
    else reader.skip();
  }
  return parameter;
}
