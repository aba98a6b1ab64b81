import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { EncoderSequence } from '../../callbacks/encoder-messages.js';
import { encodeBatch } from '../../engine/encoder/encode-batch.js';
import { type LoadedEncoder, loadEncoder } from '../../engine/encoder/load-encoder.js';
import { embed } from '../../src/encoding/embed.js';
import { EncoderCodec } from '../../src/encoding/encoder-codec.js';
import type { EncoderModel } from '../../src/encoding/encoder-model.js';
import { embedSparse, embedTokens } from '../../src/encoding/token-outputs.js';
import { TestEngines } from '../../tools/support/test-engine.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { madeEmbedder, writeMadeEmbedder } from '../support/made-embedders.js';
import { instructionSets } from '../support/native-options.js';

const made = madeEmbedder('bge-m3');
const cases = made.tokens!;
const path = writeMadeEmbedder(join(temporaryFolder('skein-token-outputs'), made.name), made);
const engines = new TestEngines();
afterAll(() => engines.remove());

const DIFFERENCE_MAX = 2e-5;

/** What each sequence asks for, from one batch. */
function outputs(encoder: LoadedEncoder, sequences: readonly EncoderSequence[]): Float32Array[] {
  const { rows, errors } = encodeBatch(encoder, sequences);
  expect(errors).toEqual(sequences.map(() => null));
  return rows;
}

function expectClose(actual: ArrayLike<number>, expected: readonly number[]): void {
  expect(actual.length).toBe(expected.length);
  for (const [i, value] of expected.entries())
    expect(Math.abs(actual[i]! - value)).toBeLessThan(DIFFERENCE_MAX);
}

describe('what a model like BGE-M3 gives of tokens', () => {
  it.each(['native', 'wasm'] as const)("is that of FlagEmbedding's rules on %s", async (executor) => {
    const { directory } = await engines.get(path, 'f32');
    const encoder = await loadEncoder(directory, { executor, threads: executor === 'native' ? 2 : 1 });
    expect([encoder.executor, encoder.outputWidth]).toEqual([executor, 32]);
    const codec = await EncoderCodec.open(directory, encoder.config);
    const model: EncoderModel = {
      codec,
      engine: { encode: async (sequences) => outputs(encoder, sequences) },
      head: encoder.config.head,
      maxSeqLen: encoder.limits.maxSeqLen,
      vocabSize: encoder.vocabSize,
      outputWidth: encoder.outputWidth,
    };
    const texts = cases.map(({ text }) => text);
    const dense = await embed(model, texts, {});
    const sparse = await embedSparse(model, texts, {});
    const vectors = await embedTokens(model, texts, {});
    const tokens = cases.reduce((sum, { ids }) => sum + ids.length, 0);
    expect([dense, sparse, vectors].map(({ promptTokens }) => promptTokens)).toEqual([
      tokens,
      tokens,
      tokens,
    ]);
    for (const [i, golden] of cases.entries()) {
      expectClose(dense.embeddings[i]!, golden.output);
      const { indices, values } = sparse.embeddings[i]!;
      expect([...indices]).toEqual(golden.weights.map(([id]) => id));
      expectClose(
        values,
        golden.weights.map(([, weight]) => weight),
      );
      expect(vectors.embeddings[i]!.length).toBe(golden.ids.length - 1);
      for (const [t, vector] of vectors.embeddings[i]!.entries()) expectClose(vector, golden.vectors[t]!);
    }
    await codec.close();
    encoder.close();
  });

  it.each(instructionSets)(
    'has the same bits on %s alone and in any batch, at any thread count',
    async (isa) => {
      const { directory } = await engines.get(path, 'bf16');
      const open = (threads: number) => loadEncoder(directory, { threads, instructionSet: isa });
      const asks = [undefined, 'weights', 'vectors'] as const;
      const sequences = cases.flatMap(({ ids }) =>
        asks.map((output) => ({
          tokenIds: Int32Array.from(ids),
          tokenTypes: null,
          ...(output !== undefined && { output }),
        })),
      );
      const single = await open(1);
      const alone = sequences.map((sequence) => outputs(single, [sequence])[0]!);
      for (const encoder of [single, await open(2), await open(3)]) {
        expect(outputs(encoder, sequences)).toEqual(alone);
        expect(outputs(encoder, sequences.toReversed()).toReversed()).toEqual(alone);
        encoder.close();
      }
    },
  );

  it('is not there without the layers, and the embedding is the same to the bit', async () => {
    const withLayers = await engines.get(path, 'f32');
    const { 'model.safetensors': own } = made.tensors;
    const plainPath = writeMadeEmbedder(join(temporaryFolder('skein-no-layers'), 'plain'), {
      ...made,
      tensors: { 'model.safetensors': own! },
    });
    const plain = await engines.get(plainPath, 'f32');
    const sequence = { tokenIds: Int32Array.from(cases[0]!.ids), tokenTypes: null };
    const rows: Float32Array[] = [];
    for (const { directory } of [withLayers, plain]) {
      const encoder = await loadEncoder(directory, { threads: 1 });
      rows.push(outputs(encoder, [sequence])[0]!);
      encoder.close();
    }
    expect(rows[0]).toEqual(rows[1]);
  });
});
