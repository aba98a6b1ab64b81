import type { Datatype } from '../../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';

type Read = (view: DataView, i: number) => number | bigint;

const READERS: Readonly<Partial<Record<Datatype, Read>>> = {
  BOOL: (view, i) => view.getUint8(i),
  INT8: (view, i) => view.getInt8(i),
  UINT8: (view, i) => view.getUint8(i),
  INT16: (view, i) => view.getInt16(2 * i, true),
  UINT16: (view, i) => view.getUint16(2 * i, true),
  INT32: (view, i) => view.getInt32(4 * i, true),
  UINT32: (view, i) => view.getUint32(4 * i, true),
  INT64: (view, i) => view.getBigInt64(8 * i, true),
  UINT64: (view, i) => view.getBigUint64(8 * i, true),
  FP16: (view, i) => halfOf(view.getUint16(2 * i, true)),
  BF16: (view, i) => brainFloatOf(view.getUint16(2 * i, true)),
  FP32: (view, i) => view.getFloat32(4 * i, true),
  FP64: (view, i) => view.getFloat64(8 * i, true),
};

const BYTES: Readonly<Partial<Record<Datatype, number>>> = {
  INT16: 2,
  UINT16: 2,
  FP16: 2,
  BF16: 2,
  INT32: 4,
  UINT32: 4,
  FP32: 4,
  INT64: 8,
  UINT64: 8,
  FP64: 8,
};

/** The elements of a tensor of numbers. */
export function numbersOf({ datatype, data }: InferTensor): (number | bigint)[] {
  const read = READERS[datatype]!;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  return Array.from({ length: data.length / (BYTES[datatype] ?? 1) }, (_, i) => read(view, i));
}

/** A number of IEEE 754's binary16. */
export function halfOf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

const word = new DataView(new ArrayBuffer(4));

/** A bfloat16: the upper half of a binary32. */
export function brainFloatOf(bits: number): number {
  word.setUint32(0, bits * 2 ** 16);
  return word.getFloat32(0);
}
