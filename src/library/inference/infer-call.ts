import { closestName } from '../../../base/did-you-mean.js';
import { messageOf } from '../../../base/error-text.js';
import { isObject, NAME, rule, wholeNumber } from '../../../base/option-values.js';
import { type Datatype, datatypeOf, elementsIn, isDatatype } from '../../../callbacks/infer/datatypes.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type {
  InferParameters,
  InferRequest,
  InferResponse,
  InferSequence,
  InferTensor,
} from '../../../callbacks/infer/infer-types.js';
import { whyNotParameters } from '../../../callbacks/infer/request-limits.js';
import { sequenceNumber, whyNotSequenceText } from '../../../callbacks/infer/sequence-id.js';
import { ParameterError } from '../../../callbacks/sampling-params.js';
import type { ModuleInput, ModuleOutput } from '../../../engine/backends/module/model-module.js';
import { datatypeOfData, moduleInput, tensorOf } from '../../../engine/backends/module/module-tensors.js';
import type { ModelConfig, ModelInput } from '../../../models/repository/model-config.js';
import { optionFault, type Rules, SIGNAL } from '../../options/option-faults.js';

/** A tensor that a program gives a model. */
export interface InferInput {
  /**
   * Numbers of an array of their type or a list of them, booleans for BOOL, texts or bytes for BYTES. An array is not copied: it is to stay
   * as it is until the answer is there.
   */
  data: ModuleOutput['data'];
  /** The batch dimension first, where the model has one. Default: the configuration's, with the one size that it leaves open. */
  shape?: readonly number[] | undefined;
  /** Default: the configuration's. */
  datatype?: Datatype | undefined;
}

/** A request of a program to a model of its server. */
export interface InferCall {
  model: string;
  /** Default: the latest that is ready. */
  version?: string | undefined;
  inputs: Readonly<Record<string, InferInput>>;
  /** Names of the outputs that are wanted. Default: all. */
  outputs?: readonly string[] | undefined;
  /** Values that are handed to the model. */
  parameters?: InferParameters | undefined;
  /** A name for the request, which the model receives. */
  id?: string | undefined;
  /** Level in the queue: 1 is the highest. Default: the model's. */
  priority?: number | undefined;
  /** Most microseconds in the queue; the model's policy says what happens then. Default: the model's. */
  timeoutUs?: number | undefined;
  /** The sequence that it belongs to. */
  sequence?: { id: bigint | number | string; start?: boolean; end?: boolean } | undefined;
  /** Its abort ends the request: the answer is no longer awaited. */
  signal?: AbortSignal | undefined;
}

/** An answer to a program. */
export interface InferAnswer {
  /** Tensors by their names: `data` is an array of their type, `texts` are those of BYTES. */
  outputs: Readonly<Record<string, ModuleInput>>;
  parameters: InferParameters;
}

const EXAMPLE = "{ model: 'squares', inputs: { X: { data: [1, 2] } } }";
const ANY_COUNT = wholeNumber(0, Number.MAX_SAFE_INTEGER);
const isText = (value: unknown) => typeof value === 'string';

const RULES: Rules<InferCall> = {
  model: NAME,
  version: rule<string>('digits', (value) => isText(value) && /^\d{0,18}$/.test(value as string)),
  inputs: rule<object>('an object of inputs by their names', isObject),
  outputs: rule<object>('a list of names', (value) => Array.isArray(value) && value.every(isText)),
  parameters: rule<object>('an object of values by their names', isObject),
  id: rule<string>('a text', isText),
  priority: ANY_COUNT,
  timeoutUs: ANY_COUNT,
  sequence: rule<object>(
    'an object such as { id: 7n, start: true }',
    (value) => isObject(value) && (typeof value.id === 'string' || sequenceNumber(value.id) !== null),
  ),
  signal: SIGNAL,
};

/** @throws ParameterError for a field that is unknown, missing, or of a value that it does not take */
export function checkCall(method: string, call: unknown): asserts call is InferCall {
  const fault = optionFault<InferCall>(method, EXAMPLE, call, RULES);
  if (fault !== null) throw new ParameterError(fault.option ?? 'options', fault.message);
  for (const name of ['model', 'inputs'] as const) {
    if ((call as Partial<InferCall>)[name] === undefined) {
      throw new ParameterError(name, `${method} needs ${name}, such as ${EXAMPLE}.`);
    }
  }
}

/** The request as every protocol makes it. @throws InferError for invalid tensors or parameters */
export function requestOf(config: ModelConfig, call: InferCall, signal: AbortSignal): InferRequest {
  const { id = '', inputs, outputs, parameters = {}, sequence, priority = 0, timeoutUs = 0 } = call;
  const wrong = whyNotParameters(parameters);
  if (wrong !== null) throw new InferError(wrong, 'invalid');
  return {
    id,
    inputs: Object.entries(inputs).map(([name, input]) => tensorOfInput(config, name, input)),
    outputs: outputs ?? null,
    parameters,
    sequence: sequenceOf(sequence),
    priority,
    timeoutUs,
    signal,
  };
}

/** @throws InferError for a text that is too long */
function sequenceOf(sequence: InferCall['sequence']): InferSequence | null {
  const { id = 0n, start = false, end = false } = sequence ?? {};
  if (typeof id !== 'string') return BigInt(id) === 0n ? null : { id: BigInt(id), start, end };
  const wrong = whyNotSequenceText(id);
  if (wrong !== null) throw new InferError(wrong, 'unsupported');
  return id === '' ? null : { id, start, end };
}

function tensorOfInput(config: ModelConfig, name: string, input: InferInput): InferTensor {
  const known = config.input.find((one) => one.name === name);
  try {
    if (!isObject(input)) throw new Error(`'${name}' is no tensor: an object with data is expected`);
    checkFields(name, input);
    const { data, shape } = input as InferInput;
    const { datatype = known === undefined ? datatypeOfData(data) : datatypeOf(known.data_type) } = input;
    if (!isDatatype(datatype)) throw new Error(`'${name}' has a datatype that there is not`);
    if (shape !== undefined && !isShape(shape)) {
      throw new Error(`'${name}' has a shape that is none: a list of whole numbers is expected`);
    }
    const wrong = Array.isArray(data) ? whyNotOfType(datatype, data) : null;
    if (wrong !== null) throw new Error(`'${name}': ${wrong}`);
    const shapeOfNone = (elements: number) =>
      known === undefined ? [elements] : openShape(known, config.max_batch_size > 0, elements);
    return tensorOf(name, datatype, shape === undefined ? { data } : { data, shape }, shapeOfNone);
  } catch (error) {
    throw new InferError(`the input of '${config.name}' is wrong: ${messageOf(error)}`, 'invalid');
  }
}

const FIELDS: readonly string[] = ['data', 'shape', 'datatype'];
/** Further fields of an answer's tensor, which is accepted as an input. */
const OF_ANSWERS: readonly string[] = ['name', 'texts'];

/** @throws an Error for a field that no tensor has */
function checkFields(name: string, input: object): void {
  const unknown = Object.keys(input).find((field) => !FIELDS.includes(field) && !OF_ANSWERS.includes(field));
  if (unknown === undefined) return;
  const meant = closestName(unknown, FIELDS);
  const hint = meant === null ? `its fields are ${FIELDS.join(', ')}` : `did you mean '${meant}'?`;
  throw new Error(`'${name}' has a field '${unknown.slice(0, 64)}', which is none of a tensor; ${hint}`);
}

const isShape = (shape: unknown) =>
  Array.isArray(shape) && shape.every((size) => Number.isSafeInteger(size) && size >= 0);

/**
 * The shape of `elements` elements: the configuration's, where at most one of its sizes is open, the batch
 * having one row then.
 * @throws an Error where they do not fill it
 */
function openShape({ name, dims }: ModelInput, isBatched: boolean, elements: number): readonly number[] {
  const known = elementsIn(dims.filter((size) => size >= 0));
  const open = dims.filter((size) => size < 0).length;
  if (open > 1) return [elements];
  const rest = elements / Math.max(1, known);
  if (!Number.isInteger(rest)) {
    throw new Error(`'${name}' has ${elements} elements, which do not fill [${dims}]`);
  }
  if (open === 1) return [...(isBatched ? [1] : []), ...dims.map((size) => (size < 0 ? rest : size))];
  return isBatched ? [rest, ...dims] : dims;
}

/** An answer as a program reads it. */
export function answerOf({ outputs, parameters = {} }: InferResponse): InferAnswer {
  return {
    outputs: Object.fromEntries(outputs.map((output) => [output.name, moduleInput(output)])),
    parameters,
  };
}

const signed = (bits: bigint) => [-(2n ** (bits - 1n)), 2n ** (bits - 1n) - 1n] as const;
const unsigned = (bits: bigint) => [0n, 2n ** bits - 1n] as const;

/** The smallest and the largest value of each type of whole numbers. */
const RANGES: Readonly<Partial<Record<Datatype, readonly [bigint, bigint]>>> = {
  BOOL: unsigned(1n),
  INT8: signed(8n),
  INT16: signed(16n),
  INT32: signed(32n),
  INT64: signed(64n),
  UINT8: unsigned(8n),
  UINT16: unsigned(16n),
  UINT32: unsigned(32n),
  UINT64: unsigned(64n),
};

/**
 * Why a list cannot be a tensor of the type; null: it can, or holds what are no numbers at all. An array of JavaScript would take each number,
 * and cut it to what its type holds.
 */
export function whyNotOfType(datatype: Datatype, values: readonly unknown[]): string | null {
  if (datatype === 'FP16' || datatype === 'BF16') return `a Uint16Array of bits is expected for ${datatype}`;
  const range = RANGES[datatype];
  if (range === undefined) return null;
  const wrong = values.find((value) => isOutside(value, range));
  return wrong === undefined ? null : `${String(wrong)} is no value of ${datatype}`;
}

function isOutside(value: unknown, [least, most]: readonly [bigint, bigint]): boolean {
  if (typeof value === 'bigint') return value < least || value > most;
  return typeof value === 'number' && !(Number.isInteger(value) && value >= least && value <= most);
}
