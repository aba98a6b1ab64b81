import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PackedBatch } from '../../../../engine/packed-call/packed-batch.js';
import { makeSamplingBatch, makeSamplingOutput } from '../../../../tools/support/sampling-rows.js';
import { WAYS } from '../../../support/executors.js';
import { SmallExecutor } from '../../../support/small-executor.js';
import { at, set } from '../../../support/spoil.js';

let small: SmallExecutor;

/** Prompt tables of two rows over such rows of tokens: [first, count]. */
const tables =
  (...rows: [number, number][]) =>
  (batch: PackedBatch) => {
    const table = new Float32Array(2 * small.executor.promptRowWidth);
    set(
      'promptTables',
      rows.map(([first, count]) => ({ first, count, table })),
    )(batch);
  };
const both =
  (...spoils: ((batch: PackedBatch) => void)[]) =>
  (batch: PackedBatch) => {
    for (const spoil of spoils) spoil(batch);
  };

describe.each(WAYS)('$name', (way) => {
  beforeAll(async () => {
    small = await SmallExecutor.open(way);
  });
  afterAll(() => small.close());

  describe('a batch that is wrong', () => {
    it.each<[string, (batch: PackedBatch) => void, RegExp]>([
      ['too many tokens', set('numTokens', 9), /numTokens is 9, but this executor takes 1 to 8/],
      ['no tokens', set('numTokens', 0), /numTokens is 0/],
      ['too many sequences', set('numSequences', 3), /numSequences is 3, .* 1 to 2/],
      ['too many rows of logits', set('numLogitRows', 5), /numLogitRows is 5, .* 0 to 4/],
      ['too many new blocks', set('numNewBlocks', 5), /numNewBlocks is 5/],
      ['a fractional count', set('numTokens', 3.5), /numTokens must be a whole number/],
      ['a token beyond the vocabulary', at('tokenIds', 2, 131), /tokenIds\[2\] is 131, .*\[0, 131\)/],
      [
        'a token beyond its prompt table',
        both(tables([0, 3]), at('tokenIds', 2, 133)),
        /tokenIds\[2\] is 133, .*\[0, 133\)/,
      ],
      [
        'a token of a table behind its rows',
        both(tables([0, 2]), at('tokenIds', 2, 131)),
        /tokenIds\[2\] is 131, .*\[0, 131\)/,
      ],
      [
        'prompt tables that overlap',
        tables([0, 2], [1, 1]),
        /promptTables has rows 1 to 2, but some of 2 to 4/,
      ],
      ['a prompt table beyond the tokens', tables([3, 2]), /promptTables has rows 3 to 5/],
      ['a prompt table of no rows', tables([1, 0]), /promptTables has rows 1 to 1/],
      [
        'a prompt table of another width',
        set('promptTables', [{ first: 0, count: 1, table: new Float32Array(3) }]),
        /table of promptTables has 3 values, but rows of/,
      ],
      ['a negative token', at('tokenIds', 0, -1), /tokenIds\[0\] is -1/],
      ['a negative position', at('positions', 1, -5), /positions\[1\] is -5/],
      ['a slot beyond the pool', at('slots', 0, 64), /slots\[0\] is 64, .*\[0, 64\)/],
      [
        'a slot that is not its block',
        at('slots', 1, 5),
        /slots\[1\] is 5, but the block table of sequence 0/,
      ],
      ['a block beyond the pool', at('blockTables', 2, 4), /blockTables\[2\] is block 4, .* 4 blocks/],
      ['a new block beyond the pool', at('newBlocks', 0, -1), /newBlocks\[0\] is -1/],
      ['a row of logits beyond the tokens', at('logitRows', 1, 4), /logitRows\[1\] is 4, .*\[0, 4\)/],
      ['queries that go backwards', at('queryStart', 1, 0), /queryStart\[1\] is 0, .* above 0/],
      ['queries that leave tokens over', at('queryStart', 2, 5), /queryStart\[2\] is 5/],
      ['queries that begin late', at('queryStart', 0, 1), /queryStart\[0\] is 1, .* 0/],
      [
        'a context shorter than its chunk',
        at('contextLength', 0, 2),
        /contextLength\[0\] is 2, .* between 3/,
      ],
      ['a context longer than its table', at('contextLength', 1, 33), /contextLength\[1\] is 33, .* 32/],
      ['a rope row that does not exist', at('ropeRows', 1, 1), /ropeRows\[1\] is 1/],
      ['no frequencies', set('ropeFrequencies', new Float32Array(3)), /ropeFrequencies/],
      ['a short array', set('slots', new Int32Array(3)), /slots has 3 entries, but 4 are needed/],
      ['an array of another type', set('slots', new Float32Array(4)), /slots must be an Int32Array/],
      ['a missing array', set('logitRows', undefined), /logitRows must be an Int32Array/],
    ])('%s: named, and nothing changes', (_, spoil, message) => {
      const before = small.executor.forward(small.validBatch()).slice();
      const batch = small.validBatch();
      spoil(batch);
      expect(() => small.executor.forward(batch)).toThrow(message);
      expect(() => small.executor.step(batch, makeSamplingBatch([{}, {}]), makeSamplingOutput(2))).toThrow(
        message,
      );
      expect(small.executor.forward(small.validBatch())).toEqual(before);
    });

    it('is named when it is no object', () => {
      expect(() => small.executor.forward(undefined as unknown as PackedBatch)).toThrow(
        'batch must be an object',
      );
    });
  });

  describe('copyBlocks', () => {
    it('refuses lists that do not agree, and blocks that are not there', () => {
      expect(() => small.executor.copyBlocks(Int32Array.of(1), Int32Array.of(1, 2))).toThrow(
        'source has 1 blocks and target 2',
      );
      expect(() => small.executor.copyBlocks(Int32Array.of(4), Int32Array.of(1))).toThrow('source[0] is 4');
      expect(() => small.executor.copyBlocks(Int32Array.of(1), Int32Array.of(-1))).toThrow('target[0] is -1');
    });
  });
});
