import { type VectorType, vectorOfType } from '../../../encoding/vector-types.js';
import { JsonNumbers } from '../../web/bodies/json-parts.js';

/** An embedding as an answer writes it. */
export type WrittenVector = string | JsonNumbers;

/** Converts embeddings to how an answer writes them. @param inBase64 the bytes of the type in base64, in place of numbers */
export function vectorWriter(type: VectorType, inBase64: boolean): (row: Float32Array) => WrittenVector {
  return (row) => {
    const vector = vectorOfType(row, type);
    return inBase64 ? base64Of(vector) : new JsonNumbers(vector);
  };
}

/** Base64 of a vector: bytes, or 32-bit floats that are little-endian on every machine. */
export function base64Of(row: Float32Array | Int8Array | Uint8Array): string {
  if (!(row instanceof Float32Array)) return Buffer.from(row.buffer).toString('base64');
  const bytes = Buffer.alloc(4 * row.length);
  for (const [i, value] of row.entries()) bytes.writeFloatLE(value, 4 * i);
  return bytes.toString('base64');
}
