import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Encoder, EngineError, InvalidRequestError, ParameterError } from 'skein';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { golden } from '../../support/hostile-pictures.js';
import { madeEmbedder, writeMadeEmbedder } from '../../support/made-embedders.js';
import { MADE_TWO_TOWERS, writeTwoTowers } from '../../support/made-two-towers.js';

const engines = new TestEngines();
const opened: Encoder[] = [];
afterEach(async () => {
  for (const encoder of opened.splice(0)) await encoder.close();
});
afterAll(() => engines.remove());

async function load(
  model: string,
  options: Partial<Parameters<typeof Encoder.load>[0]> = {},
): Promise<Encoder> {
  const { directory } = await engines.get(tinyModelPath(model), 'f32');
  const encoder = await Encoder.load({ model: directory, threads: 2, ...options });
  opened.push(encoder);
  return encoder;
}

interface Golden {
  model: string;
  texts?: string[];
  ids: number[];
  output: number[];
}
const { cases } = JSON.parse(
  readFileSync(new URL('../../goldens/encoders.json', import.meta.url), 'utf8'),
) as {
  cases: Golden[];
};

function expectClose(actual: ArrayLike<number>, expected: readonly number[]): void {
  expect(actual.length).toBe(expected.length);
  for (const [i, value] of expected.entries()) expect(Math.abs(actual[i]! - value)).toBeLessThan(2e-5);
}

describe('an encoder in a program', () => {
  it('embeds texts and token ids as transformers does', async () => {
    const encoder = await load('bert-mean');
    expect(encoder.info).toMatchObject({ task: 'embedding', dimensions: 48, maxSeqLen: 64, weights: 'f32' });
    const own = cases.filter(({ model, texts }) => model === 'bert-mean' && texts?.length === 1);
    const rows = await encoder.embed(own.map(({ texts }) => texts![0]!));
    for (const [i, row] of rows.entries()) expectClose(row, own[i]!.output);
    const [ofIds] = await encoder.embed([own[0]!.ids]);
    expect(ofIds).toEqual(rows[0]);
    expect(encoder.counts).toEqual({ running: 0, waiting: 0 });
  });

  it('embeds pictures beside texts, given as bytes, a Blob or a path', async () => {
    const folder = temporaryFolder('skein-encoder-pictures');
    const made = MADE_TWO_TOWERS[0]!;
    const { directory } = await engines.get(writeTwoTowers(folder, made), 'f32');
    const encoder = await Encoder.load({ model: directory, threads: 1 });
    opened.push(encoder);
    const file = golden('png rgb');
    const path = join(folder, 'picture.png');
    writeFileSync(path, file);
    const done: number[] = [];
    const [text, bytes, blob, read] = await encoder.embed(
      [made.texts[0]!.text, { image: file }, { image: new Blob([new Uint8Array(file)]) }, { image: path }],
      { onProgress: (count, all) => done.push(count, all) },
    );
    expectClose(text!, made.texts[0]!.row);
    expect([blob, read]).toEqual([bytes, bytes]);
    expectClose(bytes!, made.files[0]!.row);
    expect(done.slice(-2)).toEqual([4, 4]);
    const [alone] = await encoder.embed({ image: path });
    expect(alone).toEqual(bytes);
    await expect(encoder.embed([{ image: join(folder, 'none.png') }])).rejects.toThrow(
      /^'inputs\[0\]\.image' cannot be read/,
    );
    // Devices and pipes have no end, and files and blobs of any size are not read.
    for (const image of ['/dev/zero', new Blob([new Uint8Array(12_000_001)])])
      await expect(encoder.embed([{ image }])).rejects.toThrow(
        /^'inputs\[0\]\.image' cannot be read: (it is no file|.* 12000001 bytes)/,
      );
    await expect(encoder.embed(['a', 'b '.repeat(80), { image: file }])).rejects.toThrow(/input 1 has/);
    const texts = await load('bert-mean');
    await expect(texts.embed([{ image: file }])).rejects.toThrow(
      "'inputs[0].image' has a picture, which is not taken: the model reads text alone.",
    );
  });

  it('gives weights and vectors of tokens between the embeddings of other calls', async () => {
    const made = madeEmbedder('bge-m3');
    const path = writeMadeEmbedder(join(temporaryFolder('skein-encoder-tokens'), made.name), made);
    const { directory } = await engines.get(path, 'f32');
    const encoder = await Encoder.load({ model: directory, threads: 2 });
    opened.push(encoder);
    const texts = made.tokens!.map(({ text }) => text);
    const [dense, sparse, vectors] = await Promise.all([
      encoder.embed(texts),
      encoder.embedSparse(texts),
      encoder.embedTokens(texts),
    ]);
    for (const [i, golden] of made.tokens!.entries()) {
      expectClose(dense[i]!, golden.output);
      expect([...sparse[i]!.indices]).toEqual(golden.weights.map(([id]) => id));
      expectClose(
        sparse[i]!.values,
        golden.weights.map(([, weight]) => weight),
      );
      for (const [t, vector] of vectors[i]!.entries()) expectClose(vector, golden.vectors[t]!);
    }
    await expect(encoder.embedSparse(texts, { dimensions: 8 } as object)).rejects.toThrow(/dimensions/);
    await expect(encoder.embedTokens([7] as unknown as string[])).rejects.toThrow(/Input 0 is 7/);
    const plain = await load('bert-mean');
    await expect(plain.embedSparse(texts)).rejects.toThrow(/sparse_linear\.safetensors/);
  });

  it('gives every text of a crowd of calls the bits that it has alone', async () => {
    const encoder = await load('bert-last', { maxBatchTokens: 128, maxActiveRequests: 8 });
    const words = ['the', 'cat', 'dog', 'sat', 'flying', '中', 'é', 'unbelievable', 'x1'];
    const texts = Array.from({ length: 60 }, (_, i) =>
      Array.from({ length: 1 + (i % 5) }, (_, j) => words[(i * 7 + j * 3) % words.length]).join(' '),
    );
    const alone: Float32Array[] = [];
    for (const text of texts) alone.push((await encoder.embed(text))[0]!);
    const crowd = await Promise.all([
      encoder.embed(texts),
      ...texts.map(async (text) => (await encoder.embed(text))[0]!),
      encoder.embed(texts.toReversed()),
    ]);
    expect(crowd[0]).toEqual(alone);
    expect(crowd.slice(1, -1)).toEqual(alone);
    expect((crowd.at(-1) as Float32Array[]).toReversed()).toEqual(alone);
  });

  it('scores and ranks documents with a cross-encoder', async () => {
    const encoder = await load('bert-score');
    const golden = cases.find(({ model, texts }) => model === 'bert-score' && texts?.length === 2)!;
    const [query, document] = golden.texts as [string, string];
    const scores = await encoder.score(query, [document, 'a dog', 'the bird']);
    expectClose(scores.slice(0, 1), golden.output);
    const ranked = await encoder.rerank(query, [document, 'a dog', 'the bird'], { top: 2 });
    expect(ranked.map(({ score }) => score)).toEqual(scores.toSorted((a, b) => b - a).slice(0, 2));
    expect(ranked.map(({ index, score }) => scores[index] === score)).toEqual([true, true]);
    await expect(encoder.embed('x')).rejects.toThrow(
      /cross-encoder: it scores pairs of texts and embeds none/,
    );
  });

  it('classifies texts and pairs of them, the likeliest label first', async () => {
    const made = madeEmbedder('bert-classes');
    const model = writeMadeEmbedder(temporaryFolder('skein-classes'), made);
    const encoder = await Encoder.load({ model, weights: 'f32', threads: 2 });
    opened.push(encoder);
    const { labels } = made;
    expect(encoder.info).toMatchObject({ task: 'classification', dimensions: 3, labels });
    const found = await encoder.classify(made.classes!.map(({ input }) => input));
    for (const [i, { scores }] of made.classes!.entries()) {
      const sorted = labels!.map((label, k) => ({ label, score: scores[k]! }));
      sorted.sort((a, b) => b.score - a.score);
      expect(found[i]!.map(({ label }) => label)).toEqual(sorted.map(({ label }) => label));
      expectClose(
        found[i]!.map(({ score }) => score),
        sorted.map(({ score }) => score),
      );
    }
    expect(await encoder.classify([])).toEqual([]);
    for (const call of [encoder.embed('x'), encoder.score('x', ['y']), encoder.rerank('x', ['y'])])
      await expect(call).rejects.toThrow(/^This model is a classifier: it gives texts scores of its labels/);
    await expect((await load('bert-mean')).classify('x')).rejects.toThrow(/is an embedding model/);
  });

  it('brings embeddings to length 1, or leaves them as they are', async () => {
    const encoder = await load('bert-cls');
    const [plain] = await encoder.embed('the cat', { normalize: false });
    expect(await encoder.embed('the cat')).toEqual([plain]);
    const [unit] = await encoder.embed('the cat', { normalize: true });
    const length = Math.hypot(...plain!);
    expectClose(
      unit!,
      [...plain!].map((value) => value / length),
    );
    await expect((await load('bert-mean')).embed('x', { normalize: false })).rejects.toThrow(
      "normalize is false, but this model's embeddings have length 1, and it gives no others.",
    );
  });

  it('refuses what is wrong with the field, and cuts texts where it is asked to', async () => {
    const encoder = await load('bert-mean', { maxContextTokens: 16 });
    expect(encoder.info.maxSeqLen).toBe(16);
    const long = 'the cat '.repeat(20);
    await expect(encoder.embed([long])).rejects.toThrow(
      /maximum context length is 16 tokens. However, the input has 42/,
    );
    await expect(encoder.embed([long])).rejects.toBeInstanceOf(InvalidRequestError);
    expect((await encoder.embed([long], { truncatePromptTokens: -1 }))[0]!.length).toBe(48);
    const huge = 'the cat '.repeat(100_000);
    expect(await encoder.embed(huge, { truncatePromptTokens: 4 })).toEqual(await encoder.embed('the cat'));
    expect(await encoder.embed(`${huge} a dog`, { truncatePromptTokens: 4, truncateSide: 'start' })).toEqual(
      await encoder.embed('a dog'),
    );
    await expect(encoder.embed([[150]])).rejects.toThrow(/The input has the token 150/);
    await expect(encoder.embed('x', { signal: AbortSignal.abort(new Error('no more')) })).rejects.toThrow(
      'no more',
    );
    await expect(Encoder.load({ model: 'x', kvCacheDtype: 'f32' } as never)).rejects.toThrow(ParameterError);
    await expect(Encoder.load({} as never)).rejects.toThrow('Encoder.load needs the option model');
  });

  it('is not for models that generate, nor the other way round', async () => {
    const { directory } = await engines.get(tinyModelPath('gqa'), 'f32');
    await expect(Encoder.load({ model: directory })).rejects.toThrow(EngineError);
    await expect(Encoder.load({ model: directory })).rejects.toThrow(/this model generates text/);
    const { Skein } = await import('skein');
    const encoder = (await engines.get(tinyModelPath('bert-mean'), 'f32')).directory;
    await expect(Skein.load({ model: encoder })).rejects.toThrow(/this model is an encoder/);
  });
});
