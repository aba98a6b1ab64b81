import type { Datatype } from '../../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { malformed } from './errors.js';

type Writer = (view: DataView, offset: number, value: unknown) => boolean;
type Reader = (view: DataView, offset: number) => number | boolean | bigint;

interface NumberType {
  bytes: number;
  /** False: the value is not of the type. */
  write: Writer;
  read: Reader;
}

/** Whole numbers from `least` to `most`. */
function whole(
  bytes: number,
  least: number,
  most: number,
  name: 'Int8' | 'Uint8' | 'Int16' | 'Uint16' | 'Int32' | 'Uint32',
): NumberType {
  return {
    bytes,
    write: (view, offset, value) => {
      if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most)
        return false;
      view[`set${name}`](offset, value, true);
      return true;
    },
    read: (view, offset) => view[`get${name}`](offset, true),
  };
}

function wide(least: bigint, most: bigint, name: 'BigInt64' | 'BigUint64'): NumberType {
  return {
    bytes: 8,
    write: (view, offset, value) => {
      const isWhole = typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value));
      if (!isWhole) return false;
      const exact = BigInt(value);
      if (exact < least || exact > most) return false;
      view[`set${name}`](offset, exact, true);
      return true;
    },
    read: (view, offset) => view[`get${name}`](offset, true),
  };
}

function floating(bytes: number, name: 'Float32' | 'Float64'): NumberType {
  return {
    bytes,
    write: (view, offset, value) => {
      if (typeof value !== 'number' && typeof value !== 'bigint') return false;
      view[`set${name}`](offset, Number(value), true);
      return true;
    },
    read: (view, offset) => view[`get${name}`](offset, true),
  };
}

const TYPES: Readonly<Partial<Record<Datatype, NumberType>>> = {
  BOOL: {
    bytes: 1,
    write: (view, offset, value) => {
      if (typeof value !== 'boolean' && value !== 0 && value !== 1) return false;
      view.setUint8(offset, Number(value));
      return true;
    },
    read: (view, offset) => view.getUint8(offset) !== 0,
  },
  INT8: whole(1, -128, 127, 'Int8'),
  UINT8: whole(1, 0, 255, 'Uint8'),
  INT16: whole(2, -(2 ** 15), 2 ** 15 - 1, 'Int16'),
  UINT16: whole(2, 0, 2 ** 16 - 1, 'Uint16'),
  INT32: whole(4, -(2 ** 31), 2 ** 31 - 1, 'Int32'),
  UINT32: whole(4, 0, 2 ** 32 - 1, 'Uint32'),
  INT64: wide(-(2n ** 63n), 2n ** 63n - 1n, 'BigInt64'),
  UINT64: wide(0n, 2n ** 64n - 1n, 'BigUint64'),
  FP32: floating(4, 'Float32'),
  FP64: floating(8, 'Float64'),
};

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * The bytes of a tensor's elements that came as JSON, flat or as nested lists.
 * @param count elements by the shape @throws InferError where they are others, or as many as the shape does not say
 */
export function bytesOfJson(name: string, datatype: Datatype, data: unknown, count: number): Uint8Array {
  if (datatype === 'BYTES') return bytesOfTexts(name, data, count);
  const type = TYPES[datatype];
  if (type === undefined) {
    throw malformed(
      `sending ${datatype} data via JSON is not supported. Please use the binary data format for input '${name}'`,
    );
  }
  const values = flat(name, data, count);
  const bytes = new Uint8Array(count * type.bytes);
  const view = new DataView(bytes.buffer);
  let offset = 0;
  for (const value of values) {
    if (!type.write(view, offset, value)) {
      throw malformed(
        `Unable to parse 'data' of input '${name}': ${shown(value)} is not of type ${datatype}`,
      );
    }
    offset += type.bytes;
  }
  return bytes;
}

function bytesOfTexts(name: string, data: unknown, count: number): Uint8Array {
  const parts = flat(name, data, count).map((value) => {
    if (typeof value === 'string') return encoder.encode(value);
    throw malformed(`Unable to parse 'data' of input '${name}': ${shown(value)} is not a string`);
  });
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + 4 + length, 0));
  const view = new DataView(bytes.buffer);
  let offset = 0;
  for (const part of parts) {
    view.setUint32(offset, part.length, true);
    bytes.set(part, offset + 4);
    offset += 4 + part.length;
  }
  return bytes;
}

/** The elements of nested lists in order; a single value is a list of one. */
function flat(name: string, data: unknown, count: number): readonly unknown[] {
  const list = Array.isArray(data) ? data : [data];
  const values = list.some(Array.isArray) ? list.flat(Number.POSITIVE_INFINITY) : list;
  if (values.length === count) return values;
  throw malformed(
    `Unable to parse 'data': Shape does not match true shape of 'data' field: input '${name}' has ${values.length} elements, and its shape ${count}`,
  );
}

const shown = (value: unknown) =>
  (typeof value === 'bigint' ? String(value) : (JSON.stringify(value) ?? 'nothing')).slice(0, 60);

/** The elements of an output as a list of JSON, in one text: flat, as Triton writes them. @throws InferError for FP16 and BF16 */
export function jsonOfTensor({ name, datatype, data }: InferTensor): string {
  if (datatype === 'BYTES') return JSON.stringify(textsOf(data));
  const type = TYPES[datatype];
  if (type === undefined) {
    throw malformed(
      `output '${name}' is of type ${datatype}, which JSON has no form for; ask for it as binary data`,
    );
  }
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const texts: string[] = [];
  for (let offset = 0; offset < data.length; offset += type.bytes) {
    const value = type.read(view, offset);
    // A float that is no number is written as other writers of JSON do, and Triton.
    texts.push(Object.is(value, -0) ? '-0.0' : String(value));
  }
  return `[${texts.join(',')}]`;
}

/** What is no UTF-8 becomes U+FFFD: JSON has no bytes. */
export function textsOf(data: Uint8Array): string[] {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const texts: string[] = [];
  for (let offset = 0; offset + 4 <= data.length; ) {
    const end = offset + 4 + view.getUint32(offset, true);
    texts.push(decoder.decode(data.slice(offset + 4, end)));
    offset = end;
  }
  return texts;
}
