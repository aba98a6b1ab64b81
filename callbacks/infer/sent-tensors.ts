import { copiedBytes } from './copied-bytes.js';
import type { InferTensor } from './infer-types.js';

/**
 * Tensors as a message to another thread takes them. A view is sent with all of its buffer, which may be much larger than the view: such a
 * tensor is sent as a copy.
 */
export function sentTensors(tensors: readonly InferTensor[]): readonly InferTensor[] {
  if (tensors.every(isWhole)) return tensors;
  return tensors.map((tensor) => (isWhole(tensor) ? tensor : { ...tensor, data: copiedBytes(tensor.data) }));
}

const isWhole = ({ data }: InferTensor) => data.byteLength === data.buffer.byteLength;
