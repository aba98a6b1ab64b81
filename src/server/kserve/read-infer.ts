import { BYTES_PER_ELEMENT, datatypeOf, elementsIn, isDatatype } from '../../../callbacks/infer/datatypes.js';
import type { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferParameters, InferRequest, InferTensor } from '../../../callbacks/infer/infer-types.js';
import {
  LONGEST_NAME,
  MAX_DIMS,
  MAX_PARAMETERS,
  MAX_TENSORS,
} from '../../../callbacks/infer/request-limits.js';
import { meantDataType } from '../../../models/repository/meant-data-type.js';
import { malformed } from '../../serving/infer-failure.js';
import type { OutputWish } from '../../serving/protocol/chosen-outputs.js';
import type { RegionAccess } from '../../serving/protocol/region-access.js';
import { checkTextCount, countedElements } from '../../serving/protocol/tensor-limits.js';
import type { SharedSpan } from '../../serving/shared-memory/shared-regions.js';
import { bytesOfJson, type ListText } from './json-tensors.js';
import { ownParameters, unsigned } from './own-parameters.js';

/** How a client wants an output, and in which form. */
export interface FormedWish extends OutputWish {
  isBinary: boolean;
}

/** A request of the protocol, and the form that its client wants the answer in. */
export interface ReadInfer {
  request: InferRequest;
  /** Null: all outputs. */
  wishes: readonly FormedWish[] | null;
  /** All outputs that are not asked for by name come as binary data. */
  isBinary: boolean;
  /** Inputs whose elements are still text: their `data` is empty until it is read. */
  unread: readonly UnreadInput[];
  /** The same of those in shared memory. */
  shared: readonly SharedInput[];
}

type UnreadTensor = { -readonly [Field in keyof InferTensor]: InferTensor[Field] };

/** An input in shared memory. */
export interface SharedInput {
  tensor: UnreadTensor;
  span: SharedSpan;
}

/** An input whose list is still text. */
export interface UnreadInput {
  tensor: UnreadTensor;
  count: number;
  list: ListText;
}

/** What a request is read from. */
export interface RequestParts {
  /** The JSON, parsed. */
  body: unknown;
  /** Lists that stand in it by their number; null: it is whole. */
  lists: readonly ListText[] | null;
  /** Everything after the JSON. */
  binary: Uint8Array;
  regions: RegionAccess;
  signal: AbortSignal;
}

/**
 * Reads the JSON of a request and the raw tensors after it, in the order in which the inputs name them:
 *
 *   { inputs: [ A with binary_data_size 64, B with data, C with binary_data_size 8 ] }  |  A: 64 bytes  |  C: 8 bytes
 *
 * @param model its name, for refusals @throws InferError for whatever is not as the protocol has it
 */
export function readInfer(model: string, { body, lists, binary, regions, signal }: RequestParts): ReadInfer {
  const { id = '', inputs, outputs, parameters } = objectOf(body, 'the request');
  if (typeof id !== 'string') throw malformed("Unable to parse 'id': a string is expected");
  if (id.length > LONGEST_NAME)
    throw malformed(`Unable to parse 'id': at most ${LONGEST_NAME} characters are expected`);
  if (!Array.isArray(inputs)) throw malformed("Unable to parse 'inputs': a list is expected");
  if (inputs.length > MAX_TENSORS)
    throw malformed(`the request has ${inputs.length} inputs; at most ${MAX_TENSORS} are taken`);
  const given = parametersOf(parameters);
  const { binary_data_output: isBinary = false, ...rest } = given;
  if (typeof isBinary !== 'boolean')
    throw malformed("Unable to parse 'binary_data_output': true or false is expected");
  const reader = new InputReader(model, binary, lists, regions);
  const tensors = inputs.map((input) => reader.read(objectOf(input, 'an input')));
  reader.checkEnd();
  checkTextCount(tensors);
  const wishes = readOutputs(outputs ?? [], isBinary, regions);
  const request: InferRequest = {
    id,
    inputs: tensors,
    outputs: wishes?.map(({ name }) => name) ?? null,
    ...ownParameters(rest),
    signal,
  };
  return { request, wishes, isBinary, unread: reader.unread, shared: reader.shared };
}

type Fields = Readonly<Record<string, unknown>>;

function objectOf(value: unknown, what: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw malformed(`Unable to parse ${what}: an object is expected`);
}

/** Reads inputs, and hands out the raw tensors after the JSON, one by one. */
class InputReader {
  readonly unread: UnreadInput[] = [];
  readonly shared: SharedInput[] = [];
  readonly #model: string;
  readonly #binary: Uint8Array;
  readonly #lists: readonly ListText[] | null;
  readonly #regions: RegionAccess;
  #offset = 0;

  constructor(model: string, binary: Uint8Array, lists: readonly ListText[] | null, regions: RegionAccess) {
    this.#model = model;
    this.#binary = binary;
    this.#lists = lists;
    this.#regions = regions;
  }

  read({ name, shape, datatype, parameters, data }: Fields): InferTensor {
    if (typeof name !== 'string')
      throw malformed("Unable to parse 'name': a string is expected for each input");
    if (name.length > LONGEST_NAME) {
      throw malformed(
        `Unable to parse 'name': an input's has ${name.length} characters; at most ${LONGEST_NAME} are taken`,
      );
    }
    if (typeof datatype !== 'string')
      throw malformed(`Unable to parse 'datatype': a string is expected for input '${name}'`);
    if (!isDatatype(datatype)) throw malformed(invalidDatatype(name, datatype));
    const sizes = shapeOf(name, shape);
    const given = parametersOf(parameters);
    const { binary_data_size: size, shared_memory_region: region } = given;
    const sources = [data, size, region];
    if (sources.filter((source) => source !== undefined).length !== 1) throw notOneSource(sources);
    if (region !== undefined) {
      const tensor = { name, datatype, shape: sizes, data: new Uint8Array() };
      this.shared.push({ tensor, span: spanOf(given, (...part) => this.#regions.input(...part)) });
      return tensor;
    }
    if (size !== undefined) {
      return { name, datatype, shape: sizes, data: this.#take(name, unsigned('binary_data_size', size)) };
    }
    const count = elementsIn(sizes);
    const list = this.#listOf(data);
    if (list === undefined) {
      return { name, datatype, shape: sizes, data: bytesOfJson({ name, datatype, count }, data) };
    }
    const tensor = { name, datatype, shape: sizes, data: new Uint8Array() };
    this.unread.push({ tensor, count, list });
    return tensor;
  }

  /** The list whose number replaces it; undefined: `data` is what the client sent. */
  #listOf(data: unknown): ListText | undefined {
    return this.#lists === null || !Array.isArray(data) ? undefined : this.#lists[data[0]];
  }

  #take(name: string, size: number): Uint8Array {
    const left = this.#binary.length - this.#offset;
    if (size > left) {
      throw malformed(
        `unexpected size for input '${name}', expecting ${size - left} additional bytes for model '${this.#model}'`,
      );
    }
    const begin = this.#offset;
    this.#offset += size;
    return this.#binary.subarray(begin, this.#offset);
  }

  checkEnd(): void {
    if (this.#offset < this.#binary.length) {
      throw malformed(`unexpected additional input data for model '${this.#model}'`);
    }
  }
}

/** Where the elements of an input may be. */
const SOURCES = ["'data'", "'binary_data_size'", "'shared_memory_region'"];

function notOneSource(given: readonly unknown[]): InferError {
  const set = SOURCES.filter((_, i) => given[i] !== undefined);
  const all = SOURCES.map((source, i) => (i === 0 ? source : `${source} in 'parameters'`));
  return malformed(
    `Input must set only one of the following fields: ${all.join(', ')}. But ${set.length === 0 ? 'no field is set' : `set ${set.join(' ')}`}`,
  );
}

/** The part of shared memory that these parameters name. @throws InferError */
function spanOf(
  {
    shared_memory_region: region,
    shared_memory_offset: offset,
    shared_memory_byte_size: size,
  }: InferParameters,
  find: (region: string, offset: number, byteSize: number) => SharedSpan,
): SharedSpan {
  if (typeof region !== 'string') throw malformed("Unable to parse 'shared_memory_region'");
  return find(region, unsigned('shared_memory_offset', offset), unsigned('shared_memory_byte_size', size));
}

/** Triton's words, and then what it found and what it would take. */
function invalidDatatype(name: string, datatype: string): string {
  const meant = meantDataType(datatype);
  const hint = meant === null ? '' : `${datatypeOf(meant)} may be meant: `;
  const found = JSON.stringify(datatype.slice(0, 60));
  return `invalid datatype for input ${name}: ${found} is found; ${hint}one of ${Object.keys(BYTES_PER_ELEMENT).join(', ')} is expected`;
}

/** Sizes whose product is a number that can be counted. */
function shapeOf(name: string, shape: unknown): number[] {
  const isShape = Array.isArray(shape) && shape.length <= MAX_DIMS && shape.every(isSize);
  if (!isShape) {
    throw malformed(
      `Unable to parse 'shape': a list of at most ${MAX_DIMS} whole numbers is expected for input '${name}'`,
    );
  }
  countedElements(name, shape as number[]);
  return shape as number[];
}

const isSize = (size: unknown) => typeof size === 'number' && Number.isSafeInteger(size) && size >= 0;

/** Outputs that are asked for by name, each once, as it was first asked for; null: none is, which means all of them. */
function readOutputs(
  outputs: unknown,
  isBinaryByDefault: boolean,
  regions: RegionAccess,
): FormedWish[] | null {
  if (!Array.isArray(outputs)) throw malformed("Unable to parse 'outputs': a list is expected");
  if (outputs.length > MAX_TENSORS) {
    throw malformed(`the request asks for ${outputs.length} outputs; at most ${MAX_TENSORS} are taken`);
  }
  if (outputs.length === 0) return null;
  const wishes = new Map<string, FormedWish>();
  for (const output of outputs) {
    const { name, parameters } = objectOf(output, 'an output');
    if (typeof name !== 'string')
      throw malformed("Unable to parse 'name': a string is expected for each output");
    const given = parametersOf(parameters);
    const { binary_data: isBinary = isBinaryByDefault, classification, shared_memory_region } = given;
    if (typeof isBinary !== 'boolean')
      throw malformed("Unable to parse 'binary_data': true or false is expected");
    if (shared_memory_region !== undefined) checkSharedOutput(given);
    const region =
      shared_memory_region === undefined ? null : spanOf(given, (...part) => regions.output(...part));
    const wish = { name, isBinary, classification: unsigned('classification', classification), region };
    if (!wishes.has(name)) wishes.set(name, wish);
  }
  return [...wishes.values()];
}

/** @throws InferError where an output is to go to shared memory and elsewhere, too */
function checkSharedOutput({ classification, binary_data: isBinary }: InferParameters): void {
  const other = classification !== undefined ? 'classification' : isBinary === true ? 'binary_data' : null;
  if (other === null) return;
  throw malformed(`Output can't set both 'shared_memory_region' and '${other}'`);
}

function parametersOf(parameters: unknown): InferParameters {
  if (parameters === undefined || parameters === null) return {};
  const fields = objectOf(parameters, "'parameters'");
  const entries = Object.entries(fields);
  if (entries.length > MAX_PARAMETERS) {
    throw malformed(`there are ${entries.length} parameters; at most ${MAX_PARAMETERS} are taken`);
  }
  for (const [name, value] of entries) {
    if (!['string', 'number', 'bigint', 'boolean'].includes(typeof value)) {
      throw malformed(
        `parameter '${name}' has invalid type. It should be either 'int', 'bool', or 'string'.`,
      );
    }
  }
  return fields as InferParameters;
}
