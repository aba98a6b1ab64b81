import { CheckpointError } from './checkpoint.js';
import { withFile } from './file-reading.js';
import { GgufCursor } from './gguf-cursor.js';
import {
  type GgufArray,
  GgufMetadata,
  type GgufNumbers,
  type GgufScalar,
  type GgufValue,
} from './gguf-metadata.js';
import { bytesOf, elementsOf, isSupportedType, type RawTensor, refuseOverlaps } from './raw-tensor.js';

/** Content of a GGUF file's header. */
export interface GgufHeader {
  file: string;
  version: number;
  metadata: GgufMetadata;
  /** Tensors in the order of the file, with GGUF's names and shapes outermost first. */
  tensors: RawTensor[];
  /** Bytes of the file before the data and its alignment. */
  headerBytes: number;
}

// Limits on a header; real models stay far below them.
const MAX_KEYS = 65_536;
const MAX_TENSORS = 1_000_000;
const MAX_NAME_BYTES = 65_535;
const MAX_DIMENSIONS = 4;
const MAX_ARRAY_DEPTH = 4;
/** Most strings, booleans and nested arrays together: each becomes an object. */
const MAX_ARRAY_OBJECTS = 8_388_608;
const MAX_NESTED_ARRAYS = 65_536;
const DEFAULT_ALIGNMENT = 32;

/** Names of GGML's type ids. Types that cannot be converted are included, so that an error can name them. */
const TYPE_NAMES = new Map<number, string>(
  Object.entries({
    F32: 0,
    F16: 1,
    Q4_0: 2,
    Q4_1: 3,
    Q5_0: 6,
    Q5_1: 7,
    Q8_0: 8,
    Q8_1: 9,
    Q2_K: 10,
    Q3_K: 11,
    Q4_K: 12,
    Q5_K: 13,
    Q6_K: 14,
    Q8_K: 15,
    IQ2_XXS: 16,
    IQ2_XS: 17,
    IQ3_XXS: 18,
    IQ1_S: 19,
    IQ4_NL: 20,
    IQ3_S: 21,
    IQ2_S: 22,
    IQ4_XS: 23,
    I8: 24,
    I16: 25,
    I32: 26,
    I64: 27,
    F64: 28,
    IQ1_M: 29,
    BF16: 30,
    TQ1_0: 34,
    TQ2_0: 35,
    MXFP4: 39,
    NVFP4: 40,
  }).map(([name, id]) => [id, name]),
);

enum ValueType {
  U8 = 0,
  I8 = 1,
  U16 = 2,
  I16 = 3,
  U32 = 4,
  I32 = 5,
  F32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  U64 = 10,
  I64 = 11,
  F64 = 12,
}

/** Reads the header of a GGUF file, version 2 or 3, little endian. Throws a CheckpointError that names file and place. */
export function readGguf(file: string): GgufHeader {
  return withFile(file, (fd, size) => new GgufReader(new GgufCursor(file, fd, size)).read());
}

class GgufReader {
  readonly #cursor: GgufCursor;
  #arrayObjects = 0;
  #nestedArrays = 0;

  constructor(cursor: GgufCursor) {
    this.#cursor = cursor;
  }

  read(): GgufHeader {
    const { file } = this.#cursor;
    const version = this.#readVersion();
    const tensorCount = this.#count('the number of tensors', MAX_TENSORS);
    const keyCount = this.#count('the number of metadata keys', MAX_KEYS);
    const metadata = new GgufMetadata(file);
    for (let i = 0; i < keyCount; i++) this.#readPair(metadata, i);
    const infos = this.#readTensorInfos(tensorCount);
    const headerBytes = this.#cursor.position;
    return { file, version, metadata, tensors: this.#place(infos, alignmentOf(metadata)), headerBytes };
  }

  #readVersion(): number {
    const cursor = this.#cursor;
    if (cursor.fileSize < 24)
      throw this.#error(`is ${cursor.fileSize} bytes long, too short for a GGUF header`);
    const magic = cursor.u32('the magic number');
    if (magic !== 0x46554747) throw this.#error('does not begin with "GGUF"');
    const version = cursor.u32('the version');
    if (version === 2 || version === 3) return version;
    if (version !== 0 && (version & 0xffff) === 0)
      throw this.#error('is big endian; only little-endian GGUF is supported');
    throw this.#error(`has GGUF version ${version}; supported: 2, 3`);
  }

  #count(what: string, limit: number): number {
    const count = this.#cursor.size(what);
    if (count > limit) throw this.#error(`${what} is ${count}; at most ${limit} are read`);
    return count;
  }

  #name(what: string): string {
    const name = this.#cursor.string(what);
    if (name.length > MAX_NAME_BYTES) throw this.#error(`${what} is ${name.length} characters long`);
    if (/\p{Cc}/u.test(name)) throw this.#error(`${what} has a control character in it`);
    return name;
  }

  #readPair(metadata: GgufMetadata, index: number): void {
    const key = this.#name(`metadata key ${index}`);
    if (metadata.has(key)) throw this.#error(`metadata key ${key} is there twice`);
    const what = `the value of ${key}`;
    const type = this.#cursor.u32(what);
    metadata.set(key, type === ValueType.Array ? this.#array(what, 1) : this.#scalar(type, what));
  }

  #scalar(type: number, what: string): GgufScalar {
    const cursor = this.#cursor;
    switch (type) {
      case ValueType.U8:
        return cursor.u8(what);
      case ValueType.I8:
        return cursor.i8(what);
      case ValueType.U16:
        return cursor.u16(what);
      case ValueType.I16:
        return cursor.i16(what);
      case ValueType.U32:
        return cursor.u32(what);
      case ValueType.I32:
        return cursor.i32(what);
      case ValueType.F32:
        return cursor.f32(what);
      case ValueType.Bool:
        return cursor.u8(what) !== 0;
      case ValueType.String:
        return cursor.string(what);
      case ValueType.U64:
        return cursor.u64(what);
      case ValueType.I64:
        return cursor.i64(what);
      case ValueType.F64:
        return cursor.f64(what);
      default:
        throw this.#error(`${what} has type ${type}, which GGUF does not define`);
    }
  }

  #array(what: string, depth: number): GgufArray {
    const cursor = this.#cursor;
    const type = cursor.u32(what);
    const count = cursor.size(what);
    const numbers = this.#numbers(type, count, what);
    if (numbers) return numbers;
    const leastBytes = type === ValueType.Bool ? 1 : type === ValueType.String ? 8 : 12;
    if (count > cursor.remaining / leastBytes) {
      throw this.#error(`${what} claims ${count} items, more than the rest of the header can hold`);
    }
    this.#arrayObjects += count;
    if (this.#arrayObjects > MAX_ARRAY_OBJECTS) {
      throw this.#error(`${what}: the arrays hold more than ${MAX_ARRAY_OBJECTS} items`);
    }
    if (type === ValueType.Array) return this.#arrays(count, what, depth);
    const items: GgufValue[] = new Array(count);
    for (let i = 0; i < count; i++) items[i] = this.#scalar(type, what);
    return items as GgufArray;
  }

  #arrays(count: number, what: string, depth: number): GgufArray {
    this.#nestedArrays += count;
    if (depth >= MAX_ARRAY_DEPTH) throw this.#error(`${what} nests arrays deeper than ${MAX_ARRAY_DEPTH}`);
    if (this.#nestedArrays > MAX_NESTED_ARRAYS) {
      throw this.#error(`${what}: more than ${MAX_NESTED_ARRAYS} arrays lie inside arrays`);
    }
    return Array.from({ length: count }, () => this.#array(what, depth + 1));
  }

  #numbers(type: number, count: number, what: string): GgufNumbers | null {
    const view = NUMBER_ARRAYS.get(type);
    if (!view) return null;
    const length = count * view.BYTES_PER_ELEMENT;
    return new view(this.#cursor.bytes(length, what).buffer as ArrayBuffer);
  }

  #readTensorInfos(count: number): { name: string; typeId: number; shape: number[]; offset: number }[] {
    const cursor = this.#cursor;
    const infos: { name: string; typeId: number; shape: number[]; offset: number }[] = [];
    const names = new Set<string>();
    for (let i = 0; i < count; i++) {
      const name = this.#name(`the name of tensor ${i}`);
      if (names.has(name)) throw this.#error(`tensor ${name} is there twice`);
      names.add(name);
      const what = `the description of tensor ${name}`;
      const dimensions = cursor.u32(what);
      if (dimensions > MAX_DIMENSIONS) {
        throw this.#error(
          `tensor ${name} has ${dimensions} dimensions; at most ${MAX_DIMENSIONS} are possible`,
        );
      }
      const shape = Array.from({ length: dimensions }, () => cursor.size(what)).reverse();
      infos.push({ name, shape, typeId: cursor.u32(what), offset: cursor.size(what) });
    }
    return infos;
  }

  /** The tensors' data begins at the next multiple of the alignment after the header. */
  #place(
    infos: { name: string; typeId: number; shape: number[]; offset: number }[],
    alignment: number,
  ): RawTensor[] {
    const { file, position, fileSize } = this.#cursor;
    const dataStart = Math.ceil(position / alignment) * alignment;
    const tensors = infos.map(({ name, typeId, shape, offset: relative }): RawTensor => {
      const type = TYPE_NAMES.get(typeId) ?? `number ${typeId}`;
      if (relative % alignment !== 0) {
        throw this.#error(`tensor ${name} has offset ${relative}, no multiple of the alignment ${alignment}`);
      }
      const offset = dataStart + relative;
      elementsOf(file, name, shape);
      const byteLength = isSupportedType(type) ? bytesOf(file, name, type, shape) : null;
      const end = offset + (byteLength ?? 0);
      if (end > fileSize) {
        throw this.#error(
          `tensor ${name} of type ${type} and shape [${shape.join(', ')}] ends at byte ${end}, but the file is ${fileSize} bytes long; it may be cut off`,
        );
      }
      return { name, type, shape, file, offset, byteLength };
    });
    refuseOverlaps(tensors);
    return tensors;
  }

  #error(what: string): CheckpointError {
    return new CheckpointError(`${this.#cursor.file}: ${what}${what.endsWith('?') ? '' : '.'}`);
  }
}

const NUMBER_ARRAYS = new Map<
  number,
  { new (buffer: ArrayBuffer): GgufNumbers; readonly BYTES_PER_ELEMENT: number }
>([
  [ValueType.U8, Uint8Array],
  [ValueType.I8, Int8Array],
  [ValueType.U16, Uint16Array],
  [ValueType.I16, Int16Array],
  [ValueType.U32, Uint32Array],
  [ValueType.I32, Int32Array],
  [ValueType.F32, Float32Array],
  [ValueType.U64, BigUint64Array],
  [ValueType.I64, BigInt64Array],
  [ValueType.F64, Float64Array],
]);

function alignmentOf(metadata: GgufMetadata): number {
  const alignment = metadata.number('general.alignment') ?? DEFAULT_ALIGNMENT;
  const isPowerOfTwo =
    Number.isInteger(alignment) && alignment > 0 && 2 ** Math.round(Math.log2(alignment)) === alignment;
  if (!isPowerOfTwo || alignment > 65_536) {
    throw new CheckpointError(
      `${metadata.file}: general.alignment should be a power of two up to 65536, found ${alignment}.`,
    );
  }
  return alignment;
}
