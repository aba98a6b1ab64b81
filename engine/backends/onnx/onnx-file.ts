import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/**
 * What a file says of an input or output of its model, which ONNX Runtime for Node.js does not tell: it names no type but those of the tensors
 * that it takes, and shows a tensor of unknown rank as a single number.
 */
export interface OnnxFileValue {
  readonly name: string;
  /** As ONNX Runtime writes types: `tensor(float)`, `seq(map(string,tensor(float)))`. */
  readonly type: string;
  /** It is a tensor whose number of dimensions the file says. */
  readonly hasRank: boolean;
}

/** Names of element types by their numbers. Source: TensorProto.DataType of onnx.proto, https://github.com/onnx/onnx. */
const ELEMENTS = [
  'undefined',
  'float',
  'uint8',
  'int8',
  'uint16',
  'int16',
  'int32',
  'int64',
  'string',
  'bool',
  'float16',
  'double',
  'uint32',
  'uint64',
  'complex64',
  'complex128',
  'bfloat16',
  'float8e4m3fn',
  'float8e4m3fnuz',
  'float8e5m2',
  'float8e5m2fnuz',
  'uint4',
  'int4',
  'float4e2m1',
  'float8e8m0',
  'uint2',
  'int2',
] as const;

/** Numbers of the fields that are read. Source: onnx.proto. */
const MODEL = { graph: 7 } as const;
const GRAPH = { input: 11, output: 12 } as const;
const VALUE = { name: 1, type: 2 } as const;
const TYPE = { tensor: 1, sequence: 4, map: 5, opaque: 7, sparseTensor: 8, optional: 9 } as const;
const TENSOR = { element: 1, shape: 2 } as const;
const MAP = { key: 1, value: 2 } as const;

const MAX_VALUES = 4096;
const LONGEST_NAME = 1024;
/** Types within types. */
const DEEPEST = 8;

/** Inputs and outputs that a file has; weights with a default value may be among the inputs. */
export interface OnnxFileValues {
  readonly inputs: readonly OnnxFileValue[];
  readonly outputs: readonly OnnxFileValue[];
}

const NONE: OnnxFileValues = { inputs: [], outputs: [] };

/**
 * Inputs and outputs of the model in a file, each weight passed over without being read:
 *
 *   ModelProto | ... | graph: | node ... | initializer (skipped) ... | input: name, type | output: name, type | ... |
 *
 * None where the file is none of ONNX: ONNX Runtime says better what is wrong with it.
 */
export function onnxFileValues(path: string): OnnxFileValues {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return NONE;
  }
  try {
    return valuesIn(new FileBytes(file));
  } catch {
    return NONE;
  } finally {
    closeSync(file);
  }
}

function valuesIn(bytes: FileBytes): OnnxFileValues {
  const inputs: OnnxFileValue[] = [];
  const outputs: OnnxFileValue[] = [];
  for (const graph of fieldsIn(bytes, bytes.whole)) {
    if (graph.number !== MODEL.graph) continue;
    for (const field of fieldsIn(bytes, graph)) {
      const list = field.number === GRAPH.input ? inputs : field.number === GRAPH.output ? outputs : null;
      if (list !== null && list.length < MAX_VALUES) list.push(valueIn(bytes, field));
    }
  }
  return { inputs, outputs };
}

/** Places of a file between which something lies. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** A field of a message: a number, or the span of what it holds. */
interface Field extends Span {
  readonly number: number;
  readonly value: number;
}

const WINDOW = 2 ** 16;

/** Bytes of a file, read a window at a time. */
class FileBytes {
  readonly whole: Span;
  readonly #file: number;
  readonly #window = new Uint8Array(WINDOW);
  #start = 0;
  #length = 0;

  constructor(file: number) {
    this.#file = file;
    this.whole = { start: 0, end: fstatSync(file).size };
  }

  /** @throws a RangeError after the end of the file */
  at(position: number): number {
    const offset = position - this.#start;
    if (offset >= 0 && offset < this.#length) return this.#window[offset]!;
    this.#start = position;
    this.#length = readSync(this.#file, this.#window, 0, WINDOW, position);
    if (this.#length === 0) throw new RangeError('the file ends within a field');
    return this.#window[0]!;
  }

  text({ start, end }: Span): string {
    const length = Math.min(end - start, LONGEST_NAME);
    return Buffer.from(Uint8Array.from({ length }, (_, i) => this.at(start + i))).toString();
  }
}

/** Wire types of protocol buffers. Source: https://protobuf.dev/programming-guides/encoding. */
const WIRE = { number: 0, eightBytes: 1, span: 2, fourBytes: 5 } as const;

/** The fields of a message that lies in a span. @throws a RangeError for what is no message */
function* fieldsIn(bytes: FileBytes, { start, end }: Span): Generator<Field> {
  let position = start;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes.at(position++);
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new RangeError('a number has more than ten bytes');
  };
  while (position < end) {
    const key = varint();
    const number = Math.floor(key / 8);
    const wire = key % 8;
    const value = wire === WIRE.number || wire === WIRE.span ? varint() : 0;
    const size = wire === WIRE.span ? value : wire === WIRE.eightBytes ? 8 : wire === WIRE.fourBytes ? 4 : 0;
    const isKnown = wire === WIRE.number || size > 0 || wire === WIRE.span;
    if (!isKnown || position + size > end) throw new RangeError('a field is longer than its message');
    yield { number, value, start: position, end: position + size };
    position += size;
  }
}

function valueIn(bytes: FileBytes, span: Span): OnnxFileValue {
  let value: OnnxFileValue = { name: '', type: 'undefined', hasRank: false };
  for (const field of fieldsIn(bytes, span)) {
    if (field.number === VALUE.name) value = { ...value, name: bytes.text(field) };
    if (field.number === VALUE.type) value = { ...value, ...typeIn(bytes, field, 0) };
  }
  return value;
}

type Type = Omit<OnnxFileValue, 'name'>;

function typeIn(bytes: FileBytes, span: Span, depth: number): Type {
  const named = (type: string): Type => ({ type, hasRank: false });
  if (depth > DEEPEST) return named('...');
  const inner = (field: Span, number: number) => {
    const found = fieldIn(bytes, field, number);
    return found === null ? 'undefined' : typeIn(bytes, found, depth + 1).type;
  };
  for (const field of fieldsIn(bytes, span)) {
    const element = () => elementText(fieldIn(bytes, field, TENSOR.element)?.value ?? 0);
    switch (field.number) {
      case TYPE.tensor:
        return { type: `tensor(${element()})`, hasRank: fieldIn(bytes, field, TENSOR.shape) !== null };
      case TYPE.sparseTensor:
        return named(`sparse_tensor(${element()})`);
      case TYPE.sequence:
        return named(`seq(${inner(field, TENSOR.element)})`);
      case TYPE.optional:
        return named(`optional(${inner(field, TENSOR.element)})`);
      case TYPE.map:
        return named(
          `map(${elementText(fieldIn(bytes, field, MAP.key)?.value ?? 0)},${inner(field, MAP.value)})`,
        );
      case TYPE.opaque:
        return named('opaque');
    }
  }
  return named('undefined');
}

const elementText = (number: number) => ELEMENTS[number] ?? `type ${number}`;

/** The last field of this number, as protocol buffers have it; null: there is none. */
function fieldIn(bytes: FileBytes, span: Span, number: number): Field | null {
  let found: Field | null = null;
  for (const field of fieldsIn(bytes, span)) if (field.number === number) found = field;
  return found;
}
