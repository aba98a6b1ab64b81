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

/**
 * A copy of bytes that has memory of its own, from its first byte to its last: any type of number may be read there. A Buffer's own `slice`
 * gives a view of the same memory, and is not to be used for that.
 *
 *   buffer   |..other bytes..| data |..other bytes..|
 *   copy                     | data |
 */
export function copiedBytes(data: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(data);
}
