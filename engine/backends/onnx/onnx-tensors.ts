import { elementsOf, packElements } from '../../../callbacks/infer/byte-elements.js';
import type { Datatype } from '../../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { BackendError } from '../backend.js';
import type { OnnxData, OnnxRuntime, OnnxTensor } from './onnx-runtime.js';

type NumberArray = Exclude<OnnxData, string[]>;

/** ONNX Runtime's names of types, the protocol's, and the arrays that hold their elements. */
const TYPES = [
  ['bool', 'BOOL', Uint8Array],
  ['int8', 'INT8', Int8Array],
  ['int16', 'INT16', Int16Array],
  ['int32', 'INT32', Int32Array],
  ['int64', 'INT64', BigInt64Array],
  ['uint8', 'UINT8', Uint8Array],
  ['uint16', 'UINT16', Uint16Array],
  ['uint32', 'UINT32', Uint32Array],
  ['uint64', 'UINT64', BigUint64Array],
  ['float16', 'FP16', Uint16Array],
  ['float32', 'FP32', Float32Array],
  ['float64', 'FP64', Float64Array],
] as const;

interface ArrayType {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): NumberArray;
}

const BY_DATATYPE = new Map<Datatype, [string, ArrayType]>(
  TYPES.map(([type, datatype, array]) => [datatype, [type, array as ArrayType]]),
);
const DATATYPES = new Map<string, Datatype>([
  ...TYPES.map(([type, datatype]) => [type, datatype] as const),
  ['string', 'BYTES'],
]);

/** The protocol's type for one of ONNX; null: it has none, as for bfloat16, which ONNX Runtime's JavaScript does not take. */
export function datatypeOfOnnx(type: string): Datatype | null {
  return DATATYPES.get(type) ?? null;
}

const decoder = new TextDecoder();

/**
 * A tensor for ONNX Runtime. Numbers are not copied where they lie at a multiple of their size.
 * @throws BackendError for a type that it does not take
 */
export function toOnnx(runtime: OnnxRuntime, { name, datatype, shape, data }: InferTensor): OnnxTensor {
  if (datatype === 'BYTES') return new runtime.Tensor('string', textsOf(data), shape);
  const found = BY_DATATYPE.get(datatype);
  if (found === undefined) {
    throw new BackendError(`Input '${name}' is of type ${datatype}, which ONNX Runtime does not take here.`);
  }
  const [type, ArrayOf] = found;
  const { BYTES_PER_ELEMENT: size } = ArrayOf;
  // ONNX Runtime reads the memory in threads of its own: it has to be this process's alone.
  const isUsable = data.byteOffset % size === 0 && data.buffer instanceof ArrayBuffer;
  const own = isUsable ? data : Uint8Array.from(data);
  return new runtime.Tensor(type, new ArrayOf(own.buffer, own.byteOffset, own.length / size), shape);
}

/** A tensor of ONNX Runtime as the protocol has it. Numbers are not copied. @throws BackendError for a type that it has not */
export function fromOnnx(name: string, { type, dims, data }: OnnxTensor): InferTensor {
  const datatype = datatypeOfOnnx(type);
  if (datatype === null) {
    throw new BackendError(`Output '${name}' is of type ${type}, which the protocol has no name for.`);
  }
  const bytes = Array.isArray(data)
    ? packElements(data)
    : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return { name, datatype, shape: dims, data: bytes };
}

function textsOf(data: Uint8Array): string[] {
  // A decoder takes no memory that is shared with other threads.
  return elementsOf(data).map((element) => decoder.decode(element.slice()));
}
