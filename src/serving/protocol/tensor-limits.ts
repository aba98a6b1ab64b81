import { MAX_ELEMENTS } from '../../../callbacks/infer/byte-elements.js';
import { elementsIn } from '../../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../../callbacks/infer/infer-types.js';
import { malformed } from '../infer-failure.js';

/** Elements of an input of this shape. @throws InferError where they are more than can be counted */
export function countedElements(name: string, shape: readonly number[]): number {
  const count = elementsIn(shape);
  if (Number.isSafeInteger(count)) return count;
  throw malformed(`the shape of input '${name}' has more elements than can be counted`);
}

/** Texts are many objects for few bytes. @throws InferError where there are more than a request may have */
export function checkTextCount(tensors: readonly Pick<InferTensor, 'datatype' | 'shape'>[]): void {
  const count = tensors.reduce(
    (sum, { datatype, shape }) => sum + (datatype === 'BYTES' ? elementsIn(shape) : 0),
    0,
  );
  if (count > MAX_ELEMENTS)
    throw malformed(`the inputs have ${count} elements of BYTES; at most ${MAX_ELEMENTS} are taken`);
}
