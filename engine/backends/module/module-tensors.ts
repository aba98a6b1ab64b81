import { elementsOf, packElements } from '../../../callbacks/infer/byte-elements.js';
import type { Datatype } from '../../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { copiedBytes } from '../../../callbacks/infer/sent-tensors.js';
import type { ModuleInput, ModuleOutput, TensorData } from './model-module.js';

const ARRAYS = {
  BOOL: Uint8Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  FP16: Uint16Array,
  BF16: Uint16Array,
  FP32: Float32Array,
  FP64: Float64Array,
} as const;

const decoder = new TextDecoder();

/** A tensor as a module reads it. Numbers are not copied where they lie at a multiple of their size; texts are taken apart when they are asked for. */
export function moduleInput(tensor: InferTensor): ModuleInput {
  return new ReadTensor(tensor);
}

class ReadTensor implements ModuleInput {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: readonly number[];
  readonly #bytes: Uint8Array;
  #data: TensorData | null = null;

  constructor({ name, datatype, shape, data }: InferTensor) {
    this.name = name;
    this.datatype = datatype;
    this.shape = shape;
    this.#bytes = data;
  }

  /** Made once: a module may write into it. */
  get data(): TensorData {
    this.#data ??=
      this.datatype === 'BYTES' ? elementsOf(this.#bytes) : numbersOf(this.datatype, this.#bytes);
    return this.#data;
  }

  get texts(): string[] {
    if (this.datatype !== 'BYTES')
      throw new TypeError(`Input '${this.name}' is of type ${this.datatype} and holds no texts.`);
    return elementsOf(this.#bytes).map((part) => decoder.decode(part));
  }

  /** The bytes of texts that have not been read, which may be passed on as they are; else null. */
  get untouched(): Uint8Array | null {
    return this.datatype === 'BYTES' && this.#data === null ? this.#bytes : null;
  }
}

function numbersOf(datatype: Exclude<Datatype, 'BYTES'>, data: Uint8Array): TensorData {
  const ArrayOf = ARRAYS[datatype];
  const size = ArrayOf.BYTES_PER_ELEMENT;
  const own = data.byteOffset % size === 0 ? data : copiedBytes(data);
  return new ArrayOf(own.buffer as ArrayBuffer, own.byteOffset, own.length / size);
}

/**
 * A module's output as a tensor of the datatype. @param shape where the output names none
 * @throws an Error whose message says what is wrong with the data
 */
export function tensorOf(
  name: string,
  datatype: Datatype,
  output: ModuleOutput,
  shapeOfNone: (elements: number) => readonly number[],
): InferTensor {
  const untouched = output instanceof ReadTensor && output.datatype === datatype ? output.untouched : null;
  if (untouched !== null) return { name, datatype, shape: output.shape!, data: untouched };
  const { data, shape } = output;
  if (!Array.isArray(data) && !(ArrayBuffer.isView(data) && 'length' in data)) {
    throw new Error(`'${name}' has no data: a typed array or a list is expected`);
  }
  const bytes = datatype === 'BYTES' ? bytesOfTexts(name, data) : bytesOfNumbers(name, datatype, data);
  return { name, datatype, shape: shape ?? shapeOfNone(data.length), data: bytes };
}

function bytesOfNumbers(
  name: string,
  datatype: Exclude<Datatype, 'BYTES'>,
  data: ModuleOutput['data'],
): Uint8Array {
  const ArrayOf = ARRAYS[datatype];
  if (ArrayBuffer.isView(data)) {
    if (!(data instanceof ArrayOf)) {
      throw new Error(`'${name}' is a ${data.constructor.name}; ${ArrayOf.name} is expected for ${datatype}`);
    }
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  }
  const isBig = datatype === 'INT64' || datatype === 'UINT64';
  const values = data as readonly unknown[];
  const wrong = values.find((value) => !['number', 'bigint', 'boolean'].includes(typeof value));
  if (wrong !== undefined)
    throw new Error(`'${name}' holds ${String(wrong)}; numbers are expected for ${datatype}`);
  const array = isBig
    ? (ArrayOf as typeof BigInt64Array).from(values as (number | bigint)[], (value) => BigInt(value))
    : (ArrayOf as typeof Float32Array).from(values as number[], Number);
  return new Uint8Array(array.buffer);
}

function bytesOfTexts(name: string, data: ModuleOutput['data']): Uint8Array {
  const values = ArrayBuffer.isView(data) ? [data] : (data as readonly unknown[]);
  const wrong = values.find((value) => typeof value !== 'string' && !(value instanceof Uint8Array));
  if (wrong !== undefined) {
    throw new Error(`'${name}' holds ${typeof wrong} values; texts or bytes are expected for BYTES`);
  }
  return packElements(values as (string | Uint8Array)[]);
}

/** The datatype of data that names none. */
export function datatypeOfData(data: ModuleOutput['data']): Datatype {
  if (Array.isArray(data))
    return typeof data[0] === 'string' || data[0] instanceof Uint8Array ? 'BYTES' : 'FP32';
  const found = Object.entries(ARRAYS).find(([name, ArrayOf]) => name !== 'BOOL' && data instanceof ArrayOf);
  return (found?.[0] ?? 'FP32') as Datatype;
}
