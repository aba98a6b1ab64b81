import { MAX_ELEMENTS } from '../../../../callbacks/infer/byte-elements.js';
import { BYTES_PER_ELEMENT, type Datatype } from '../../../../callbacks/infer/datatypes.js';
import type { InferError } from '../../../../callbacks/infer/infer-error.js';
import { malformed } from '../../../serving/infer-failure.js';
import { nextTurn } from '../../../serving/protocol/turns.js';
import { unreadable, VarintCursor } from './varint-cursor.js';
import { BYTES, FIXED32, FIXED64, VARINT } from './wire-reader.js';

/** Types of the fields of InferTensorContents, by their numbers. */
const FIELDS = ['', 'BOOL', 'INT32', 'INT64', 'UINT32', 'UINT64', 'FP32', 'FP64', 'BYTES'] as const;
type FieldType = Exclude<(typeof FIELDS)[number], ''>;

/** The field that has the elements of a datatype; those that are not here come as raw bytes alone. */
const FIELD_OF: Readonly<Partial<Record<Datatype, FieldType>>> = {
  BOOL: 'BOOL',
  INT8: 'INT32',
  INT16: 'INT32',
  INT32: 'INT32',
  INT64: 'INT64',
  UINT8: 'UINT32',
  UINT16: 'UINT32',
  UINT32: 'UINT32',
  UINT64: 'UINT64',
  FP32: 'FP32',
  FP64: 'FP64',
  BYTES: 'BYTES',
};

/** How an element of each field is written. */
const WIRE_TYPES: Readonly<Record<FieldType, number>> = {
  BOOL: VARINT,
  INT32: VARINT,
  INT64: VARINT,
  UINT32: VARINT,
  UINT64: VARINT,
  FP32: FIXED32,
  FP64: FIXED64,
  BYTES,
};

/** Values of types that are narrower than their field. */
const RANGES: Readonly<Partial<Record<Datatype, readonly [least: number, most: number]>>> = {
  INT8: [-128, 127],
  INT16: [-(2 ** 15), 2 ** 15 - 1],
  UINT8: [0, 255],
  UINT16: [0, 2 ** 16 - 1],
};

/** Elements that are read in one go: some tenths of a millisecond. */
const SLICE = 2 ** 14;

/** An input whose elements are read. */
export interface WantedContents {
  model: string;
  name: string;
  datatype: Datatype;
  /** Elements by the shape. */
  count: number;
}

/** The most bytes that the elements take: what is held while they are read. */
export function mostBytesOf({ datatype, count }: WantedContents, contents: Uint8Array): number {
  const size = BYTES_PER_ELEMENT[datatype];
  // An element takes a byte at least, and one of BYTES two, in front of which come its four of the length.
  return size === null
    ? contents.length + 4 * Math.min(count, Math.ceil(contents.length / 2))
    : Math.min(count, contents.length) * size;
}

/**
 * The bytes of a tensor whose elements came by their types, read in turns with others.
 * @throws InferError where they are of another type, or more than the shape says; GrpcError for bytes that are no elements
 */
export async function bytesOfContents(
  wanted: WantedContents,
  contents: Uint8Array,
  signal?: AbortSignal,
): Promise<Uint8Array> {
  const elements = new ContentsReader(wanted, contents);
  while (!elements.read(SLICE)) await nextTurn(signal);
  return elements.result();
}

/**
 * Reads the elements of a message InferTensorContents into the bytes of a tensor:
 *
 *   | tag of int_contents | length | 1 2 3 4 ... |  or  | tag | 1 | tag | 2 | ...
 *                                   ^at          ^listEnd
 */
class ContentsReader {
  readonly #wanted: WantedContents;
  readonly #bytes: Uint8Array;
  readonly #field: FieldType | undefined;
  readonly #data: Uint8Array;
  readonly #view: DataView;
  readonly #range: readonly [number, number] | null;
  readonly #cursor: VarintCursor;
  /** Where the list ends that is being read; up to `at`: none is. */
  #listEnd = 0;
  #count = 0;
  #length = 0;

  constructor(wanted: WantedContents, bytes: Uint8Array) {
    this.#wanted = wanted;
    this.#bytes = bytes;
    this.#cursor = new VarintCursor(bytes);
    this.#field = FIELD_OF[wanted.datatype];
    this.#range = RANGES[wanted.datatype] ?? null;
    this.#data = new Uint8Array(mostBytesOf(wanted, bytes));
    this.#view = new DataView(this.#data.buffer);
  }

  /** Reads up to `most` elements or fields. True: nothing is left. @throws InferError, GrpcError */
  read(most: number): boolean {
    for (let left = most; left > 0; left--) {
      if (this.#cursor.at < this.#listEnd) {
        this.#readElement();
        if (this.#cursor.at > this.#listEnd) throw unreadable('a list ends in the middle of a number');
      } else if (this.#cursor.at >= this.#bytes.length) return true;
      else this.#readField();
    }
    return this.#cursor.at >= this.#bytes.length;
  }

  result(): Uint8Array {
    return this.#data.subarray(0, this.#length);
  }

  #readField(): void {
    this.#cursor.read();
    const type = this.#cursor.low & 7;
    const field = FIELDS[this.#cursor.low >>> 3];
    if (field === undefined || field === '' || this.#cursor.high !== 0) {
      throw unreadable('contents have a field that they do not have in this protocol');
    }
    const own = WIRE_TYPES[field];
    if (type === own && field === this.#field) this.#readElement();
    else if (type === BYTES && own !== BYTES) this.#beginList(field);
    else if (type === own) throw this.#ofOtherType(field);
    else throw unreadable(`elements of ${field} are written in a way that theirs are not`);
  }

  /** Packed numbers. An empty list is none. */
  #beginList(field: FieldType): void {
    this.#cursor.read();
    const length = this.#cursor.low;
    if (this.#cursor.high !== 0 || length > this.#bytes.length - this.#cursor.at)
      throw unreadable('it ends too early');
    if (length === 0) return;
    if (field !== this.#field) throw this.#ofOtherType(field);
    if (field === 'FP32' || field === 'FP64') this.#copyList(length, field === 'FP32' ? 4 : 8);
    else this.#listEnd = this.#cursor.at + length;
  }

  /** Floats are written as they lie in memory. */
  #copyList(length: number, size: number): void {
    if (length % size !== 0) throw unreadable('a list of floats has a part of one');
    this.#count += length / size;
    if (this.#count > this.#wanted.count) throw this.#isTooMany();
    this.#data.set(this.#bytes.subarray(this.#cursor.at, this.#cursor.at + length), this.#length);
    this.#length += length;
    this.#cursor.at += length;
  }

  #readElement(): void {
    if (this.#count === this.#wanted.count) throw this.#isTooMany();
    this.#count++;
    if (this.#field === 'FP32' || this.#field === 'FP64') {
      const size = this.#field === 'FP32' ? 4 : 8;
      this.#copy(size);
    } else if (this.#field === 'BYTES') this.#readText();
    else this.#readNumber();
  }

  #readNumber(): void {
    this.#cursor.read();
    const view = this.#view;
    const at = this.#length;
    switch (this.#wanted.datatype) {
      case 'BOOL':
        view.setUint8(at, Number(this.#cursor.low !== 0 || this.#cursor.high !== 0));
        this.#length += 1;
        break;
      case 'INT8':
      case 'UINT8':
        view.setUint8(at, this.#checked());
        this.#length += 1;
        break;
      case 'INT16':
      case 'UINT16':
        view.setUint16(at, this.#checked(), true);
        this.#length += 2;
        break;
      case 'INT32':
      case 'UINT32':
        view.setUint32(at, this.#cursor.low, true);
        this.#length += 4;
        break;
      default:
        view.setUint32(at, this.#cursor.low, true);
        view.setUint32(at + 4, this.#cursor.high, true);
        this.#length += 8;
    }
  }

  /** A number that is within its type. */
  #checked(): number {
    const [least, most] = this.#range!;
    const value = this.#field === 'INT32' ? this.#cursor.low | 0 : this.#cursor.low;
    if (value >= least && value <= most) return value;
    const { name, datatype } = this.#wanted;
    throw malformed(`Unable to parse contents of input '${name}': ${value} is not of type ${datatype}`);
  }

  /** An element of BYTES becomes its length, 4 bytes, and its bytes. */
  #readText(): void {
    if (this.#count > MAX_ELEMENTS) {
      throw malformed(
        `input '${this.#wanted.name}' has more than ${MAX_ELEMENTS} string elements, which is the limit`,
      );
    }
    this.#cursor.read();
    const length = this.#cursor.low;
    if (this.#cursor.high !== 0) throw unreadable('it ends too early');
    this.#view.setUint32(this.#length, length, true);
    this.#length += 4;
    this.#copy(length);
  }

  #copy(bytes: number): void {
    if (bytes > this.#bytes.length - this.#cursor.at) throw unreadable('it ends too early');
    this.#data.set(this.#bytes.subarray(this.#cursor.at, this.#cursor.at + bytes), this.#length);
    this.#length += bytes;
    this.#cursor.at += bytes;
  }

  #ofOtherType(field: FieldType): InferError {
    const { name, model, datatype } = this.#wanted;
    const input = `unexpected explicit tensor data for input tensor '${name}' for model '${model}'`;
    if (this.#count > 0) return malformed(`${input}, binary data was already supplied.`);
    return malformed(`${input} of type '${field}', expected datatype '${datatype}'`);
  }

  #isTooMany(): InferError {
    const { name, model, count, datatype } = this.#wanted;
    const size = BYTES_PER_ELEMENT[datatype];
    if (size === null) {
      return malformed(
        `unexpected number of string elements ${count + 1} for inference input '${name}' for model '${model}', expecting ${count}`,
      );
    }
    return malformed(
      `input byte size mismatch for input '${name}' for model '${model}'. Expected ${size * count}, got more`,
    );
  }
}
