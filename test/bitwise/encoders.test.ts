import { afterAll, describe, expect, it } from 'vitest';
import type { EncoderSequence } from '../../callbacks/encoder-messages.js';
import { type LoadedEncoder, loadEncoder } from '../../engine/encoder/load-encoder.js';
import { Random } from '../../tools/support/random.js';
import { INSTRUCTION_SETS, TestEngines, tinyModelPath } from '../../tools/support/test-engine.js';
import { freshFolders } from '../support/fresh-folders.js';
import { spoilModel } from '../support/spoilt-model.js';
import { TINY_ENCODERS } from '../support/test-encoder.js';

const engines = new TestEngines();
afterAll(() => engines.remove());

const freshFolder = freshFolders('skein-encoders');

const LENGTHS = [1, 2, 5, 17, 31, 32, 33, 48, 60, 64];

/** Beyond what one unit of attention sees: with the scalar kernels, which take seconds for them, in one precision. */
const LONG_LENGTHS = [512, 513];

function crowd(encoder: LoadedEncoder, seed: number, withLong = true): EncoderSequence[] {
  const random = new Random(seed);
  const longest = encoder.limits.maxSeqLen;
  const lengths = withLong && longest > 512 ? [...LENGTHS, ...LONG_LENGTHS] : LENGTHS;
  return lengths.map((length) => ({
    tokenIds: Int32Array.from({ length }, () => 4 + random.below(encoder.vocabSize - 4)),
    tokenTypes: Int32Array.from({ length }, () => random.below(encoder.config.tokenTypes)),
  }));
}

/** Each sequence's row in a batch of its own. */
function alone(encoder: LoadedEncoder, sequences: readonly EncoderSequence[]): Float32Array[] {
  return sequences.map((sequence) => encoder.encode([sequence]).slice());
}

function together(encoder: LoadedEncoder, sequences: readonly EncoderSequence[]): Float32Array[] {
  const rows = encoder.encode(sequences);
  return sequences.map((_, i) => rows.slice(i * encoder.outputWidth, (i + 1) * encoder.outputWidth));
}

const PRECISIONS = ['f32', 'bf16', 'int8', 'int4'] as const;

/** Scalar code, which takes most of the time and has the bits of the vector tables, runs each model in one precision. */
const setsOf = (model: (typeof TINY_ENCODERS)[number], precision: (typeof PRECISIONS)[number]) =>
  INSTRUCTION_SETS.filter(
    (isa) => isa !== 'scalar' || precision === PRECISIONS[(TINY_ENCODERS.indexOf(model) + 1) % 4],
  );

describe.each(TINY_ENCODERS)('the rows of %s', (model) => {
  describe.each(PRECISIONS)('with %s weights', (precision) => {
    it.each(setsOf(model, precision))(
      'on %s are the same bits alone and in any batch, at any thread count',
      async (isa) => {
        const { directory } = await engines.get(tinyModelPath(model), precision);
        const open = (threads: number) =>
          loadEncoder(directory, { threads, maxNumTokens: 4096, maxNumSequences: 64, instructionSet: isa });
        const single = await open(1);
        const withLong = isa !== 'scalar' || precision === 'bf16';
        const sequences = crowd(single, 7, withLong);
        const expected = alone(single, sequences);
        for (const encoder of [single, await open(2), await open(3)]) {
          // The batch before leaves values in the blocks that are longer and shorter in turn.
          expect(
            together(encoder, [...sequences, ...crowd(encoder, 8, false)]).slice(0, sequences.length),
          ).toEqual(expected);
          expect(together(encoder, sequences.toReversed()).toReversed()).toEqual(expected);
          expect(alone(encoder, sequences)).toEqual(expected);
          encoder.close();
        }
      },
    );
  });

  it('never depend on what is not a number in a neighbour or in a batch before', async () => {
    const prefix = model.endsWith('score') ? `${model.split('-')[0]}.` : '';
    const spoilt = { tensor: `${prefix}embeddings.word_embeddings.weight`, row: 3, value: Number.NaN };
    const source = spoilModel(tinyModelPath(model), freshFolder(), spoilt);
    const { directory } = await engines.get(source, 'f32');
    const encoder = await loadEncoder(directory, { threads: 2, maxNumTokens: 512 });
    const sequences = crowd(encoder, 9).filter(({ tokenIds }) => tokenIds.length < 64);
    const poison = sequences.map((one) => ({ ...one, tokenIds: one.tokenIds.map(() => 3) }));
    const expected = alone(encoder, sequences);
    expect(expected.flatMap((row) => [...row]).every(Number.isFinite)).toBe(true);
    for (const poisoned of poison) expect(encoder.encode([poisoned]).every(Number.isNaN)).toBe(true);
    // Each in the blocks of a longer one that was not finite, and next to one.
    for (const [i, sequence] of sequences.entries()) {
      encoder.encode(poison.toReversed());
      expect(together(encoder, [sequence, poison[2]!])[0]).toEqual(expected[i]);
      expect(together(encoder, [poison[4]!, sequence])[1]).toEqual(expected[i]);
    }
    encoder.close();
  });
});
