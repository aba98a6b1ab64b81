import { BYTES_PER_ELEMENT } from '../../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { malformed } from './errors.js';
import { numbersOf } from './tensor-numbers.js';

const encoder = new TextEncoder();

/**
 * The classes with the largest values, as texts VALUE:INDEX or VALUE:INDEX:LABEL, the largest first. With a batch dimension they are those
 * of each row. Source: the classification extension of the protocol.
 * @param isBatched the first dimension is that of the batch @param labels of the indexes; empty: none
 * @throws InferError for a tensor of texts
 */
export function classified(
  tensor: InferTensor,
  count: number,
  isBatched: boolean,
  labels: readonly string[],
): InferTensor {
  const { name, datatype, shape } = tensor;
  if (BYTES_PER_ELEMENT[datatype] === null) {
    throw malformed(`classification is asked for output '${name}', which is of type BYTES`);
  }
  const values = numbersOf(tensor);
  const rows = isBatched ? (shape[0] ?? 1) : 1;
  const classes = rows === 0 ? 0 : values.length / rows;
  const wanted = Math.min(count, classes);
  const texts: string[] = [];
  for (let row = 0; row < rows; row++) {
    const order = Array.from({ length: classes }, (_, i) => i);
    const at = (i: number) => values[row * classes + i]!;
    order.sort((a, b) => (at(a) < at(b) ? 1 : at(a) > at(b) ? -1 : a - b));
    for (const i of order.slice(0, wanted)) {
      const label = labels[i] === undefined || labels[i] === '' ? '' : `:${labels[i]}`;
      texts.push(`${valueText(at(i), datatype)}:${i}${label}`);
    }
  }
  return { name, datatype: 'BYTES', shape: isBatched ? [rows, wanted] : [wanted], data: packed(texts) };
}

/** Floats have six digits behind the point, as C writes them. */
function valueText(value: number | bigint, datatype: string): string {
  return typeof value === 'number' && datatype.includes('FP') ? value.toFixed(6) : String(value);
}

function packed(texts: readonly string[]): Uint8Array {
  const parts = texts.map((text) => encoder.encode(text));
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
