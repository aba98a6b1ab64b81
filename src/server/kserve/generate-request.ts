import { closestName } from '../../../base/did-you-mean.js';
import { MAX_ELEMENTS } from '../../../callbacks/infer/byte-elements.js';
import { datatypeOf, elementsIn } from '../../../callbacks/infer/datatypes.js';
import { InferError } from '../../../callbacks/infer/infer-error.js';
import type { InferRequest, InferTensor } from '../../../callbacks/infer/infer-types.js';
import { LONGEST_NAME, MAX_PARAMETERS, MAX_TENSORS } from '../../../callbacks/infer/request-limits.js';
import type { ModelConfig, ModelInput } from '../../../models/repository/model-config.js';
import { malformed } from '../../serving/infer-failure.js';
import { TEXT_PARAMETERS } from '../../serving/texts/parameter-inputs.js';
import { bytesOfJson } from './json-tensors.js';
import { ownParameters } from './own-parameters.js';

/** A request of the generate extension: fields that are inputs of the model, and others that go to it as parameters. */
export type GenerateRequest = Pick<
  InferRequest,
  'id' | 'inputs' | 'parameters' | 'sequence' | 'priority' | 'timeoutUs'
>;

/** Fields of a model of texts for which true and false stand for 1 and 0: Triton's own backend has a boolean there. */
const NUMBERED: ReadonlySet<string> = new Set(['early_stopping']);

/**
 * Reads the fields of a request:
 *
 *   { "id": "a", "text_input": "Hi", "parameters": { "max_tokens": 8 }, ... }
 *          ^ no input              ^ inputs, wherever they stand        ^ all else: parameters of the request, some of them its own as with infer
 *
 * @param isOfTexts its inputs are known, so that a name which is none of them is refused
 * @throws InferError in Triton's words, where it has some
 */
export function readGenerateRequest(config: ModelConfig, body: unknown, isOfTexts: boolean): GenerateRequest {
  const fields = objectOf(body) ?? refuse('failed to parse the request JSON buffer: an object is expected');
  const { id = '', parameters, ...rest } = fields;
  if (typeof id !== 'string') throw malformed("Unable to parse 'id': a string is expected");
  if (id.length > LONGEST_NAME)
    throw malformed(`Unable to parse 'id': at most ${LONGEST_NAME} characters are expected`);
  const reader = new FieldReader(config, isOfTexts);
  reader.read(rest, '');
  if (parameters !== undefined) {
    if (config.input.some(({ name }) => name === 'parameters'))
      throw malformed("Keyword 'parameters' for nested schema also given as input tensor name");
    const nested = objectOf(parameters) ?? refuse("Expected JSON object for keyword: 'parameters'");
    reader.read(nested, "Converting keyword: 'parameters': ");
  }
  return { id, ...reader.request() };
}

type Fields = Readonly<Record<string, unknown>>;

const objectOf = (value: unknown): Fields | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null;

function refuse(message: string): never {
  throw malformed(message);
}

class FieldReader {
  readonly #config: ModelConfig;
  readonly #isOfTexts: boolean;
  readonly #inputs: InferTensor[] = [];
  readonly #parameters = new Map<string, string | number | bigint | boolean>();

  constructor(config: ModelConfig, isOfTexts: boolean) {
    this.#config = config;
    this.#isOfTexts = isOfTexts;
  }

  /** @param context in front of a refusal */
  read(fields: Fields, context: string): void {
    for (const [name, value] of Object.entries(fields)) {
      try {
        this.#take(name, value);
      } catch (error) {
        if (context === '' || !(error instanceof InferError)) throw error;
        throw new InferError(`${context}${error.message}`, error.kind);
      }
    }
  }

  request(): Omit<GenerateRequest, 'id'> {
    const texts = this.#inputs.filter(({ datatype }) => datatype === 'BYTES');
    const count = texts.reduce((sum, { shape }) => sum + elementsIn(shape), 0);
    if (count > MAX_ELEMENTS)
      throw malformed(`the inputs have ${count} elements of BYTES; at most ${MAX_ELEMENTS} are taken`);
    return { inputs: this.#inputs, ...ownParameters(Object.fromEntries(this.#parameters)) };
  }

  #take(name: string, value: unknown): void {
    const input = this.#config.input.find((one) => one.name === name);
    if (input === undefined) {
      this.#takeParameter(name, value);
      return;
    }
    if (this.#inputs.length === MAX_TENSORS)
      throw malformed(`the request has more than ${MAX_TENSORS} inputs, which is the limit`);
    const isNumbered = this.#isOfTexts && typeof value === 'boolean' && NUMBERED.has(name);
    this.#inputs.push(fieldTensor(this.#config, input, isNumbered ? Number(value) : value));
  }

  #takeParameter(name: string, value: unknown): void {
    if (this.#isOfTexts && !TEXT_PARAMETERS.includes(name)) throw this.#unknown(name);
    if (!['string', 'number', 'bigint', 'boolean'].includes(typeof value)) {
      throw malformed(
        `parameter '${name}' has invalid type. It should be either 'int', 'bool', or 'string'.`,
      );
    }
    if (this.#parameters.size === MAX_PARAMETERS)
      throw malformed(`there are more than ${MAX_PARAMETERS} parameters, which is the limit`);
    this.#parameters.set(name, value as string | number | bigint | boolean);
  }

  #unknown(name: string): InferError {
    const { input, name: model } = this.#config;
    const meant = closestName(name, [...input.map((one) => one.name), ...TEXT_PARAMETERS]);
    const hint = meant === null ? '' : `; did you mean '${meant}'?`;
    return malformed(`'${name.slice(0, 64)}' is no field that model '${model}' takes${hint}`);
  }
}

/**
 * A field of a request as the tensor of that name. A scalar is one element, a list its elements; nested lists that have the input's
 * dimensions are its shape. For all else the input's fixed sizes are filled, then its innermost free one:
 *
 *   [-1]      "x" -> [1]    [1, 2, 3] -> [3]        [2, -1]   [1, 2, 3, 4] -> [2, 2]    [[1, 2, 3], [4, 5, 6]] -> [2, 3]
 *
 * Source: Triton's generate extension; the nested lists are this server's own.
 * @throws InferError for values of another type, or as many as no shape has
 */
function fieldTensor(
  { max_batch_size: maxBatchSize }: Pick<ModelConfig, 'max_batch_size'>,
  input: ModelInput,
  value: unknown,
): InferTensor {
  const { name } = input;
  const datatype = datatypeOf(input.data_type);
  const nested = Array.isArray(value) ? value : [value];
  const values = nested.some(Array.isArray) ? nested.flat(Number.POSITIVE_INFINITY) : nested;
  const dims = maxBatchSize > 0 ? [-1, ...input.dims] : input.dims;
  const shape =
    nestedShape(nested, values.length, dims) ?? filledShape(values.length, dims, maxBatchSize > 0);
  if (shape === null) throw noShape(name);
  return { name, datatype, shape, data: bytesOfJson({ name, datatype, count: values.length }, values) };
}

/** The sizes of nested lists, where the input may have them; null: it may not, or they are of different lengths. */
function nestedShape(nested: readonly unknown[], count: number, dims: readonly number[]): number[] | null {
  const shape: number[] = [];
  for (let list: unknown = nested; Array.isArray(list) && shape.length <= dims.length; list = list[0]) {
    shape.push(list.length);
  }
  const fits =
    shape.length > 1 &&
    shape.length === dims.length &&
    shape.every((size, i) => dims[i] === -1 || dims[i] === size) &&
    shape.reduce((product, size) => product * size, 1) === count;
  return fits ? shape : null;
}

/** The input's sizes, with the free ones filled in; null: no shape fits `count` elements. */
function filledShape(count: number, dims: readonly number[], isBatched: boolean): number[] | null {
  const fixed = dims.reduce((product, size) => (size === -1 ? product : product * size), 1);
  // Without elements the batch is one of nothing, which the model's configuration allows or not.
  if (count === 0) {
    const innermost = dims.lastIndexOf(-1);
    return dims.map((size, i) => (size === -1 ? (i === innermost && !(isBatched && i === 0) ? 0 : 1) : size));
  }
  if (count % fixed !== 0) return null;
  let left = count / fixed;
  const shape = [...dims];
  for (let i = shape.length - 1; i >= 0; i--) {
    if (shape[i] !== -1) continue;
    shape[i] = left;
    left = 1;
  }
  return left === 1 ? shape : null;
}

function noShape(name: string): InferError {
  return malformed(`The schema can not convert input '${name}' to tensor with proper shape`);
}
