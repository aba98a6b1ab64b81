import { CheckpointError } from './checkpoint.js';
import { sliceOf } from './quantized/quantized-source.js';
import type { RawTensor } from './raw-tensor.js';
import type { NamedTensor } from './tensor-layout.js';

/**
 * The matrices that lie in a tensor, one after the other, under names of their own: each is a slice of its bytes.
 *
 *   | parts[0]: rows x columns | parts[1] | ...      all rows of the tensor
 *
 * @param parts name and rows of each; of a quantised tensor all have as many
 * @throws CheckpointError for a quantised tensor whose parts differ in their rows
 */
export function rowSlices(
  tensor: RawTensor,
  parts: readonly (readonly [name: string, rows: number])[],
  columns: number,
): [name: string, slice: NamedTensor][] {
  const all = parts.reduce((sum, [, rows]) => sum + rows, 0);
  if (tensor.quantized !== undefined && parts.some(([, rows]) => rows !== parts[0]![1])) {
    throw new CheckpointError(
      `${tensor.file}: tensor ${tensor.name} is quantised, which is not supported for projections by heads of keys.`,
    );
  }
  let first = 0;
  return parts.map(([name, rows], index) => {
    const offset = tensor.offset + (first * tensor.byteLength!) / all;
    const byteLength = (rows * tensor.byteLength!) / all;
    const quantized = tensor.quantized && sliceOf(tensor.quantized, index, parts.length);
    first += rows;
    return [name, { ...tensor, shape: [rows, columns], offset, byteLength, ...(quantized && { quantized }) }];
  });
}
