import { BYTES_PER_ELEMENT, type Datatype, elementsIn } from '../../../callbacks/infer/datatypes.js';

/** Bytes of the length of a text, all that an empty one has. */
const LENGTH_BYTES = 4;

/** Elements that are all 0, false, or empty texts. */
export function zeroData(datatype: Datatype, shape: readonly number[]): Uint8Array {
  return new Uint8Array(elementsIn(shape) * (BYTES_PER_ELEMENT[datatype] ?? LENGTH_BYTES));
}
