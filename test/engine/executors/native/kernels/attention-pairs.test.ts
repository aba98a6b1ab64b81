import { describe, expect, it } from 'vitest';
import { isShort } from '../../../../support/scale.js';
import { expectNear } from './attention-reference.js';
import { sequenceOf } from './attention-sequence.js';
import { attentionTables, bitsOf, expectSameBits, isEmulated } from './kernel-hooks.js';

/** Kernels have ways of their own for few pairs of a row and a head, and for rows of whole lines: every number of pairs meets both. */
describe.each(attentionTables)('attention of many pairs of rows and heads, %s', (table) => {
  const cautious = isShort || isEmulated(table);

  it('gives a row the same bits among any number of rows and heads', () => {
    for (const headDim of [64, 24])
      for (const group of cautious ? [1, 5] : [1, 2, 3, 5, 8]) {
        const tokens = 160;
        const shape = { dtype: 'bf16', tokens, tokensPerBlock: 32, kvHeads: 1, group, headDim } as const;
        const sequence = sequenceOf(table, shape, group);
        const rows = Math.ceil(40 / group);
        const begin = tokens - rows;
        const alone = Array.from({ length: rows }, (_, r) => sequence.run(begin, tokens, r, r + 1)[0]!);
        const step = cautious ? 3 : 1;
        for (let count = 2; count <= rows; count += step) {
          const first = (count * 7) % (rows - count + 1);
          sequence.run(begin, tokens, first, first + count).forEach((row, r) => {
            expectSameBits(
              row,
              alone[first + r]!,
              () => `row ${first + r} of ${first}..${first + count}, ${group} heads`,
            );
          });
        }
      }
  });

  it('gives a generation step the same bits whatever the block size', () => {
    for (const [headDim, group] of [
      [64, 3],
      [32, 8],
      [96, 1],
      [80, 4],
    ] as const) {
      const shape = { dtype: 'bf16', tokens: 150, kvHeads: 1, group, headDim } as const;
      const [first, ...others] = [8, 16, 32, 64, 128].map((tokensPerBlock) => {
        const sequence = sequenceOf(table, { ...shape, tokensPerBlock });
        return Buffer.concat([31, 32, 100, 127, 128, 149].map((t) => bitsOf(sequence.run(t, t + 1)[0]!)));
      });
      for (const other of others) expect(other.equals(first!)).toBe(true);
    }
  });

  it('agrees with a double precision softmax for long heads and heads of odd length', () => {
    for (const [headDim, group, tokensPerBlock] of [
      [5, 2, 8],
      [33, 3, 32],
      [96, 4, 64],
      [112, 1, 16],
      [256, 3, 32],
      [320, 1, 32],
    ] as const) {
      const tokens = cautious ? 140 : 300;
      const sequence = sequenceOf(table, {
        dtype: 'bf16',
        tokens,
        tokensPerBlock,
        kvHeads: 2,
        group,
        headDim,
      });
      const begin = tokens - 20;
      const rows = sequence.run(begin, tokens);
      for (const position of [begin, begin + 7, tokens - 1]) {
        expectNear(
          rows[position - begin]!,
          sequence.expected(position),
          `position ${position}, head of ${headDim}`,
        );
        expectSameBits(
          sequence.run(position, position + 1)[0]!,
          rows[position - begin]!,
          () => `position ${position}`,
        );
      }
    }
  });

  it('goes on with what rows have of positions that they share', () => {
    for (const dtype of ['bf16', 'f32', 'int8'] as const) {
      const tokens = 700;
      const shape = { dtype, tokens, tokensPerBlock: 32, kvHeads: 1, group: 3, headDim: 32 };
      const sequence = sequenceOf(table, shape);
      const whole = sequence.run(690, tokens);
      for (const shared of [128, 384, 512, 640])
        sequence.run(690, tokens, 0, 10, 0, 0, 0, 0, shared).forEach((row, r) => {
          expectSameBits(row, whole[r]!, () => `row ${r} behind ${shared} positions`);
        });
    }
  });
});
