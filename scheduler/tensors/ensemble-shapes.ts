/** A tensor on its way between models. */
interface Shaped {
  readonly shape: readonly number[];
  /** Rows of the batch that its first dimension counts; 0: whoever made it takes no batches. */
  readonly batchSize: number;
}

/**
 * The shape in which a tensor goes on, where one of two models takes batches and the other does not:
 *
 *   made by            taken as            [1, 4] or [4]  becomes
 *   one with batches   no batches, [4]     [1, 4]  ->  [4]
 *   one with batches   no batches, [1, 4]  [1, 4]              the batch is a dimension like others
 *   one without        batches of [4]      [4]     ->  [1, 4]
 *   one without        batches of [4]      [3, 4]              its first dimension is a batch
 *
 * The elements stay as they are. Source: Triton's ensemble scheduler.
 * @param dims of whoever takes it, without the batch dimension; -1: any size
 */
export function shapeFor(
  { shape, batchSize }: Shaped,
  dims: readonly number[],
  takesBatches: boolean,
): readonly number[] {
  if (takesBatches === batchSize > 0) return shape;
  const fits = shape.length === dims.length && shape.every((size, i) => dims[i] === -1 || dims[i] === size);
  if (takesBatches) return fits ? [1, ...shape] : shape;
  return !fits && batchSize === 1 ? shape.slice(1) : shape;
}
