import { describe, expect, it } from 'vitest';
import { shapeFor } from '../../../../src/serving/ensembles/step-tensors.js';

describe('a tensor between models with and without batches', () => {
  it.each([
    ['both with', [3, 4], 3, [4], true, [3, 4]],
    ['both without', [4], 0, [4], false, [4]],
    ['one row to none', [1, 4], 1, [4], false, [4]],
    ['one row that is a dimension', [1, 4], 1, [1, 4], false, [1, 4]],
    ['a batch that is a dimension', [3, 4], 3, [-1, 4], false, [3, 4]],
    ['a batch that fits nothing', [3, 4], 3, [4], false, [3, 4]],
    ['none to one row', [4], 0, [4], true, [1, 4]],
    ['a dimension that is a batch', [3, 4], 0, [4], true, [3, 4]],
  ])('has the shape that its taker expects: %s', (_, shape, batchSize, dims, takesBatches, expected) => {
    expect(shapeFor({ shape, batchSize }, dims, takesBatches)).toEqual(expected);
  });
});
