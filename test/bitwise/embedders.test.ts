import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { EncoderSequence } from '../../callbacks/encoder-messages.js';
import type { InstructionSet } from '../../callbacks/gpt-manager-options.js';
import { type LoadedEncoder, loadEncoder } from '../../engine/encoder/load-encoder.js';
import { Random } from '../../tools/support/random.js';
import { INSTRUCTION_SETS, TestEngines } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { type MadeEmbedder, madeEmbedder, writeMadeEmbedder } from '../support/made-embedders.js';

const folder = temporaryFolder('skein-embedders');
const engines = new TestEngines();
afterAll(() => engines.remove());

/** Causal in one pass with a window, with weights by position, both ways with windows, with scores by distance, and with experts. */
const MODELS = [
  'e5-mistral',
  'qwen2-weighted',
  'embeddinggemma',
  'modernbert-old',
  'mpnet',
  'deberta-v3',
  'nomic-embed-moe',
] as const;
/** Longer than a split of the attention, and one whose length is no multiple of anything. */
const LENGTHS = [1, 2, 19, 20, 21, 32, 33, 64, 127, 530, 601];
const LONGEST = 640;

type MadeTensor = MadeEmbedder['tensors'][string][number];

/** The same model for longer texts. */
function longer(name: string): string {
  const made = madeEmbedder(name);
  const config = { ...(made.files['config.json'] as object), max_position_embeddings: LONGEST };
  const tensors = Object.fromEntries(
    Object.entries(made.tensors).map(([file, list]) => [file, list.map(withMorePositions)]),
  );
  return writeMadeEmbedder(join(folder, name), { ...made, tensors }, { 'config.json': config });
}

/** The table of learned positions has a row for each. */
function withMorePositions([name, shape, mean, spread]: MadeTensor): MadeTensor {
  return [name, name.includes('position_embeddings') ? [LONGEST, shape[1]!] : shape, mean, spread];
}

function crowd(encoder: LoadedEncoder, seed: number): EncoderSequence[] {
  const random = new Random(seed);
  return LENGTHS.map((length) => ({
    tokenIds: Int32Array.from({ length }, () => 3 + random.below(encoder.vocabSize - 3)),
    tokenTypes: null,
  }));
}

const alone = (encoder: LoadedEncoder, sequences: readonly EncoderSequence[]) =>
  sequences.map((sequence) => encoder.encode([sequence]).slice());

function together(encoder: LoadedEncoder, sequences: readonly EncoderSequence[]): Float32Array[] {
  const rows = encoder.encode(sequences);
  return sequences.map((_, i) => rows.slice(i * encoder.outputWidth, (i + 1) * encoder.outputWidth));
}

/** Scalar code takes most of the time, and has the bits of a vector table. */
const SETS = INSTRUCTION_SETS.filter((isa) => isa !== 'scalar');

describe.each(MODELS)('the rows of %s', (name) => {
  const path = longer(name);

  it.each(SETS)('are the same bits on %s alone and in any batch, at any thread count', async (isa) => {
    const { directory } = await engines.get(path, 'bf16');
    const open = (threads: number) =>
      loadEncoder(directory, { threads, maxNumTokens: 4096, maxNumSequences: 32, instructionSet: isa });
    const single = await open(1);
    const sequences = crowd(single, 5);
    const expected = alone(single, sequences);
    for (const encoder of [single, await open(2), await open(3)]) {
      // The batch before leaves values in the blocks that are longer and shorter in turn.
      expect(together(encoder, [...sequences, ...crowd(encoder, 8)]).slice(0, sequences.length)).toEqual(
        expected,
      );
      expect(together(encoder, sequences.toReversed()).toReversed()).toEqual(expected);
      expect(alone(encoder, sequences)).toEqual(expected);
      encoder.close();
    }
  });

  it('are the same bits on wasm alone and in a batch', async () => {
    const { directory } = await engines.get(path, 'f32');
    const encoder = await loadEncoder(directory, {
      executor: 'wasm',
      maxNumTokens: 2048,
      maxNumSequences: 16,
    });
    const sequences = crowd(encoder, 6).filter(({ tokenIds }) => tokenIds.length !== 530);
    expect(together(encoder, sequences.toReversed()).toReversed()).toEqual(alone(encoder, sequences));
    encoder.close();
  });
});

describe.each(['mpnet', 'deberta-v3'])('the scores by distance of %s', (name) => {
  const vectors = INSTRUCTION_SETS.filter((isa) => isa === 'avx2' || isa === 'neon');

  it.each(vectors)('have the bits of scalar code on %s', async (isa) => {
    const { directory } = await engines.get(longer(name), 'f32');
    const rows = async (instructionSet: InstructionSet) => {
      const encoder = await loadEncoder(directory, { threads: 1, maxNumTokens: 1024, instructionSet });
      const encoded = alone(encoder, crowd(encoder, 9).slice(0, 9));
      encoder.close();
      return encoded;
    };
    expect(await rows(isa)).toEqual(await rows('scalar'));
  });
});
