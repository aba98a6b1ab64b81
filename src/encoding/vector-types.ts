import { shown } from '../../base/option-values.js';
import { InvalidRequestError } from '../errors/request-errors.js';

/**
 * Types in which the values of an embedding are given, as Cohere's and Voyage's APIs name them.
 *
 *     float     the model's own values
 *     int8      each value times 127 over the row's greatest magnitude, rounded: cosines stay, lengths do not
 *     uint8     int8 plus 128
 *     ubinary   a bit for each value, 1 if it is above 0, packed into bytes from the highest bit on
 *     binary    ubinary minus 128
 */
export const VECTOR_TYPES = ['float', 'int8', 'uint8', 'binary', 'ubinary'] as const;

export type VectorType = (typeof VECTOR_TYPES)[number];

/** What an embedding's values are in a type. */
export interface VectorOfType {
  float: Float32Array;
  int8: Int8Array;
  uint8: Uint8Array;
  binary: Int8Array;
  ubinary: Uint8Array;
}

/**
 * The values of an embedding in another type. @param row [dimensions] @returns [dimensions], for bits [ceil(dimensions / 8)],
 * the last of which are 0 where dimensions is no multiple of 8
 * @throws InvalidRequestError for an unknown type
 */
export function vectorOfType<T extends VectorType>(row: Float32Array, type: T): VectorOfType[T];
export function vectorOfType(row: Float32Array, type: VectorType): VectorOfType[VectorType] {
  switch (type) {
    case 'float':
      return row;
    case 'int8':
      return Int8Array.from(bytes(row));
    case 'uint8':
      return Uint8Array.from(bytes(row), (byte) => byte + 128);
    case 'ubinary':
      return bits(row);
    case 'binary':
      return Int8Array.from(bits(row), (byte) => byte - 128);
    default:
      throw new InvalidRequestError(
        `type is ${shown(type)}; it must be one of ${VECTOR_TYPES.join(', ')}.`,
        'type',
      );
  }
}

function bytes(row: Float32Array): Float64Array {
  const greatest = row.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const scale = greatest === 0 ? 0 : 127 / greatest;
  return Float64Array.from(row, (value) => Math.round(value * scale));
}

function bits(row: Float32Array): Uint8Array {
  const packed = new Uint8Array(Math.ceil(row.length / 8));
  for (const [i, value] of row.entries()) if (value > 0) packed[i >> 3]! |= 0x80 >> (i & 7);
  return packed;
}
