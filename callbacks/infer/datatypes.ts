import type { DataType } from '../../models/repository/model-config.js';

/**
 * Element types of the Open Inference Protocol with their bytes an element. BYTES has none: each of its elements is a
 * length, an unsigned 32-bit number, and as many bytes.
 * Source: the protocol's "Tensor Data Types".
 */
export const BYTES_PER_ELEMENT = {
  BOOL: 1,
  INT8: 1,
  INT16: 2,
  INT32: 4,
  INT64: 8,
  UINT8: 1,
  UINT16: 2,
  UINT32: 4,
  UINT64: 8,
  FP16: 2,
  BF16: 2,
  FP32: 4,
  FP64: 8,
  BYTES: null,
} as const;

export type Datatype = keyof typeof BYTES_PER_ELEMENT;

export function isDatatype(text: string): text is Datatype {
  return Object.hasOwn(BYTES_PER_ELEMENT, text);
}

/** Elements of a tensor whose sizes are all known. */
export function elementsIn(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** The protocol's name of a type of a configuration. */
export function datatypeOf(type: DataType): Datatype {
  return type === 'TYPE_STRING' ? 'BYTES' : (type.slice('TYPE_'.length) as Datatype);
}
