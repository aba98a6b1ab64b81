import { joinedBytes } from '../../base/joined-arrays.js';
import { BYTES_PER_ELEMENT, elementsIn } from '../../callbacks/infer/datatypes.js';
import type { InferTensor } from '../../callbacks/infer/infer-types.js';
import { BackendError } from './backend.js';

/**
 * The rows of an input of several requests as one tensor, for a backend that runs a batch at once:
 *
 *   a [2, 16]   b [1, 16]   ->   [3, 16]
 *
 * Data that lies one after the other, as packBatch lays it, is not copied.
 * @param parts in the order of the requests, all of one input
 * @throws BackendError if sizes after the first differ: there is no such tensor of ragged rows
 */
export function gatherRows(parts: readonly InferTensor[]): InferTensor {
  const [first] = parts;
  if (first === undefined) throw new BackendError('There are no rows to be put together.');
  if (parts.length === 1) return first;
  const { name, datatype, shape } = first;
  for (const part of parts) {
    if (part.shape.length === shape.length && part.shape.every((size, i) => i === 0 || size === shape[i]))
      continue;
    throw new BackendError(
      `Input '${name}' has the shapes [${shape}] and [${part.shape}] in one batch; this model takes rows of one size.`,
    );
  }
  const rows = parts.reduce((sum, part) => sum + part.shape[0]!, 0);
  return { name, datatype, shape: [rows, ...shape.slice(1)], data: joined(parts.map(({ data }) => data)) };
}

/** One array of all bytes; a view where they lie one after the other. */
function joined(parts: readonly Uint8Array[]): Uint8Array {
  const first = parts[0]!;
  let end = first.byteOffset;
  const isOneBlock = parts.every(({ buffer, byteOffset, length }) => {
    const follows = buffer === first.buffer && byteOffset === end;
    end += length;
    return follows;
  });
  return isOneBlock
    ? new Uint8Array(first.buffer, first.byteOffset, end - first.byteOffset)
    : joinedBytes(parts);
}

/**
 * The tensor of a batch as one for each request: the first sizes[0] rows, the next sizes[1], and so on. Nothing is copied.
 * @throws BackendError for a tensor that has not as many rows
 */
export function splitRows(tensor: InferTensor, sizes: readonly number[]): InferTensor[] {
  const { name, shape } = tensor;
  const rows = sizes.reduce((sum, size) => sum + size, 0);
  if (shape[0] !== rows) {
    throw new BackendError(`Output '${name}' has the shape [${shape}]; the batch has ${rows} rows.`);
  }
  if (sizes.length === 1) return [tensor];
  const inner = shape.slice(1);
  return cut(
    tensor,
    sizes.map((size) => [size, ...inner]),
  );
}

/**
 * The elements of a tensor as tensors of these shapes, one after the other. Nothing is copied.
 * @throws BackendError for a tensor that has not as many elements
 */
export function splitElements(tensor: InferTensor, shapes: readonly (readonly number[])[]): InferTensor[] {
  const expected = shapes.reduce((sum, shape) => sum + elementsIn(shape), 0);
  if (elementsIn(tensor.shape) !== expected) {
    const found = `the shape [${tensor.shape}]`;
    throw new BackendError(
      `Output '${tensor.name}' has ${found}; the requests of the batch take ${expected} elements of it.`,
    );
  }
  return cut(tensor, shapes);
}

function cut(tensor: InferTensor, shapes: readonly (readonly number[])[]): InferTensor[] {
  const { name, datatype, data } = tensor;
  const elementBytes = BYTES_PER_ELEMENT[datatype];
  let offset = 0;
  return shapes.map((shape) => {
    const begin = offset;
    if (elementBytes === null) offset = afterTexts(tensor, begin, elementsIn(shape));
    else offset += elementsIn(shape) * elementBytes;
    return { name, datatype, shape: [...shape], data: data.subarray(begin, offset) };
  });
}

/** End offset of `count` elements of BYTES data. */
function afterTexts({ name, data }: InferTensor, begin: number, count: number): number {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let offset = begin;
  for (let i = 0; i < count; i++) {
    offset += offset + 4 <= data.length ? 4 + view.getUint32(offset, true) : 5;
    if (offset > data.length)
      throw new BackendError(`Output '${name}' has fewer elements than its shape says.`);
  }
  return offset;
}
