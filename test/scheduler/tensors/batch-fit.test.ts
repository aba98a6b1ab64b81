import { describe, expect, it } from 'vitest';
import { type FitInput, type FitTensor, fitOf } from '../../../scheduler/tensors/batch-fit.js';

const input = (name: string, dims: number[], more: Partial<FitInput> = {}): FitInput => ({
  ...{ name, dims, allow_ragged_batch: false, optional: false, is_shape_tensor: false },
  ...more,
});
const tensor = (name: string, shape: number[], bytes: number[] = []): FitTensor => ({
  ...{ name, shape, data: Uint8Array.from(bytes) },
});

interface Case {
  rule: string;
  inputs: FitInput[];
  isBatched?: boolean;
  one: FitTensor[];
  other: FitTensor[];
  fits: boolean;
}

describe('two requests in one batch', () => {
  it.each<Case>([
    {
      rule: 'rows do not matter',
      inputs: [input('A', [-1])],
      one: [tensor('A', [1, 16])],
      other: [tensor('A', [7, 16])],
      fits: true,
    },
    {
      rule: 'a free size does',
      inputs: [input('A', [-1])],
      one: [tensor('A', [1, 16])],
      other: [tensor('A', [1, 8])],
      fits: false,
    },
    {
      rule: 'unless ragged ones are allowed',
      inputs: [input('A', [-1], { allow_ragged_batch: true })],
      one: [tensor('A', [1, 16])],
      other: [tensor('A', [1, 8])],
      fits: true,
    },
    {
      rule: 'another input is still asked',
      inputs: [input('A', [-1], { allow_ragged_batch: true }), input('B', [2, -1])],
      one: [tensor('A', [1, 16]), tensor('B', [1, 2, 3])],
      other: [tensor('A', [1, 8]), tensor('B', [1, 2, 4])],
      fits: false,
    },
    {
      rule: 'the order of tensors does not matter',
      inputs: [input('A', [-1]), input('B', [-1])],
      one: [tensor('A', [1, 2]), tensor('B', [1, 3])],
      other: [tensor('B', [1, 3]), tensor('A', [1, 2])],
      fits: true,
    },
    {
      rule: 'sizes are not taken for those of another input',
      inputs: [input('A', [-1]), input('B', [-1])],
      one: [tensor('A', [1, 2]), tensor('B', [1, 3])],
      other: [tensor('A', [1, 3]), tensor('B', [1, 2])],
      fits: false,
    },
    {
      rule: 'which optional inputs there are does',
      inputs: [input('A', [4]), input('B', [4], { optional: true })],
      one: [tensor('A', [1, 4])],
      other: [tensor('A', [1, 4]), tensor('B', [1, 4])],
      fits: false,
    },
    {
      rule: 'a ragged optional input: that it is there',
      inputs: [input('A', [-1], { optional: true, allow_ragged_batch: true })],
      one: [tensor('A', [1, 4])],
      other: [tensor('A', [1, 9])],
      fits: true,
    },
    {
      rule: 'what a shape tensor says does',
      inputs: [input('S', [2], { is_shape_tensor: true })],
      one: [tensor('S', [2], [1, 2])],
      other: [tensor('S', [2], [1, 3])],
      fits: false,
    },
    {
      rule: 'without a batch dimension the first one is part of the size',
      inputs: [input('A', [-1])],
      isBatched: false,
      one: [tensor('A', [3])],
      other: [tensor('A', [4])],
      fits: false,
    },
  ])('$rule', ({ inputs, isBatched = true, one, other, fits }) => {
    const textOf = fitOf(inputs, isBatched);
    expect(textOf(one) === textOf(other)).toBe(fits);
  });

  it('are told apart by nothing where all sizes are fixed', () => {
    expect(fitOf([input('A', [3, 4]), input('B', [2])], true)([tensor('A', [1, 3, 4])])).toBe('');
  });

  it('are told apart by a short text', () => {
    const textOf = fitOf([input('A', [-1]), input('B', [4]), input('C', [2, -1])], true);
    expect(textOf([tensor('A', [1, 16]), tensor('B', [1, 4]), tensor('C', [1, 2, 5])])).toBe('16;2x5');
  });
});
