import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { EncoderSequence } from '../../callbacks/encoder-messages.js';
import { type LoadedEncoder, loadEncoder } from '../../engine/encoder/load-encoder.js';
import { classify } from '../../src/encoding/classify.js';
import { EncoderCodec } from '../../src/encoding/encoder-codec.js';
import type { EncoderModel } from '../../src/encoding/encoder-model.js';
import { scorePairs } from '../../src/encoding/score.js';
import { TestEngines } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { MADE_EMBEDDERS, type MadeEmbedder, writeMadeEmbedder } from '../support/made-embedders.js';
import { greatestDifference } from './compare-logits.js';

/** Rows that are not scaled to length 1 have values of the order of 1. */
const DIFFERENCE_MAX = 2e-5;
/** Least cosine to sentence-transformers in float32. */
const COSINE_MIN = 1 - 1e-5;
const SCORE_DIFFERENCE_MAX = 1e-5;

const folder = temporaryFolder('skein-embedders');
const engines = new TestEngines();
afterAll(() => engines.remove());

const EXECUTORS = ['native', 'wasm'] as const;

async function open(made: MadeEmbedder, executor: (typeof EXECUTORS)[number]) {
  const { directory } = await engines.get(join(folder, made.name), 'f32');
  return {
    directory,
    encoder: await loadEncoder(directory, { executor, threads: executor === 'native' ? 2 : 1 }),
  };
}

const sequenceOf = (ids: readonly number[]): EncoderSequence => ({
  tokenIds: Int32Array.from(ids),
  tokenTypes: null,
});

function rowsOf(encoder: LoadedEncoder, sequences: readonly EncoderSequence[]): Float32Array[] {
  const rows = encoder.encode(sequences);
  return sequences.map((_, i) => rows.slice(i * encoder.outputWidth, (i + 1) * encoder.outputWidth));
}

function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const dot = (x: ArrayLike<number>, y: ArrayLike<number>) =>
    Array.from(x).reduce((sum, value, i) => sum + value * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

/** The encoder as texts need it. */
function modelOf(encoder: LoadedEncoder, codec: EncoderCodec): EncoderModel {
  return {
    codec,
    engine: { encode: async (sequences) => rowsOf(encoder, sequences) },
    head: encoder.config.head,
    maxSeqLen: encoder.limits.maxSeqLen,
    vocabSize: encoder.vocabSize,
    outputWidth: encoder.outputWidth,
  };
}

for (const made of MADE_EMBEDDERS) writeMadeEmbedder(join(folder, made.name), made);

describe.each(MADE_EMBEDDERS.filter(({ cases }) => cases !== undefined))(
  'the embeddings of $name against sentence-transformers',
  (made) => {
    it.each(EXECUTORS)('are the same on %s, in one ragged batch', async (executor) => {
      const { encoder, directory } = await open(made, executor);
      expect(encoder.executor).toBe(executor);
      const codec = await EncoderCodec.open(directory, encoder.config);
      const limit = { maxSeqLen: encoder.limits.maxSeqLen };
      const texts = made.texts!.map(({ text }) => text);
      const encoded = await codec.single(texts, limit, 'input', String);
      expect(encoded.map(({ tokenIds }) => [...tokenIds])).toEqual(made.texts!.map(({ ids }) => ids));
      const given = [...made.cases!, ...made.texts!];
      const sequences = [...made.cases!.map(({ ids }) => sequenceOf(ids)), ...encoded];
      for (const [i, row] of rowsOf(encoder, sequences).entries()) {
        const { output, ids } = given[i]!;
        expect(cosine(row, output), `case ${i} of ${ids.length} tokens`).toBeGreaterThan(COSINE_MIN);
        const most = Math.max(1, ...output.map(Math.abs));
        expect(greatestDifference(output, row) / most, `case ${i} of ${ids.length} tokens`).toBeLessThan(
          DIFFERENCE_MAX,
        );
      }
      encoder.close();
      await codec.close();
    });
  },
);

describe.each(MADE_EMBEDDERS.filter(({ pairs }) => pairs !== undefined))(
  'the scores of $name against sentence-transformers',
  (made) => {
    it.each(EXECUTORS)('are the same on %s', async (executor) => {
      const { encoder, directory } = await open(made, executor);
      const codec = await EncoderCodec.open(directory, encoder.config);
      const pairs = made.pairs!.map(({ pair }) => pair);
      const names = { param: 'pairs', pair: (i: number) => `pair ${i}` };
      const { scores } = await scorePairs(modelOf(encoder, codec), pairs, {}, names);
      const expected = made.pairs!.map(({ score }) => score);
      expect(greatestDifference(expected, Float32Array.from(scores))).toBeLessThan(SCORE_DIFFERENCE_MAX);
      encoder.close();
      await codec.close();
    });
  },
);

describe.each(MADE_EMBEDDERS.filter(({ classes }) => classes !== undefined))(
  'the scores of the labels of $name against transformers',
  (made) => {
    it.each(EXECUTORS)('are the same on %s, of texts and of pairs', async (executor) => {
      const { encoder, directory } = await open(made, executor);
      const codec = await EncoderCodec.open(directory, encoder.config);
      const inputs = made.classes!.map(({ input }) => input);
      const { labels, rows, scoresOf, promptTokens } = await classify(modelOf(encoder, codec), inputs, {});
      expect(labels).toEqual(made.labels);
      expect(promptTokens).toBe(made.classes!.reduce((sum, { ids }) => sum + ids.length, 0));
      for (const [i, one] of made.classes!.entries())
        expect(greatestDifference(one.scores, scoresOf(rows[i]!)), `case ${i}`).toBeLessThan(
          SCORE_DIFFERENCE_MAX,
        );
      encoder.close();
      await codec.close();
    });
  },
);
