import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadTower } from '../../../../engine/tower/load-tower.js';
import { decodedPicture } from '../../../../models/images/decode-picture.js';
import { readPictureFiles } from '../../../../models/images/picture-files.js';
import { PICTURE_LIMITS } from '../../../../models/images/picture-limits.js';
import { picturePreprocessor } from '../../../../models/images/preprocess/index.js';
import { loadSharp } from '../../../../models/images/sharp-package.js';
import { TestEngines } from '../../../../tools/support/test-engine.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { golden } from '../../../support/hostile-pictures.js';
import { MADE_TWO_TOWERS, writeTwoTowers } from '../../../support/made-two-towers.js';
import { postJson } from '../../../support/post-json.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';

const folder = temporaryFolder('skein-two-towers-server');
const engines = new TestEngines();
const paths = new Map(MADE_TWO_TOWERS.map((made) => [made.name, writeTwoTowers(folder, made)]));

let server: SkeinProcess;
beforeAll(async () => {
  const models = [...paths].flatMap(([name, path]) => ['--model', `${name}=${path}`]);
  server = await startServer([...models, '--weights', 'f32', '--threads', '1']);
});
afterAll(async () => {
  await server.stop();
  engines.remove();
});

const image = (name: string) => ({ image: `data:image/png;base64,${golden(name).toString('base64')}` });

interface Answer {
  data: { embedding: number[] | string }[];
  usage: { prompt_tokens: number };
}

async function embed(body: object): Promise<Answer> {
  const response = await postJson(`${server.url}/v1/embeddings`, body);
  const answer = (await response.json()) as Answer;
  expect(response.status, JSON.stringify(answer)).toBe(200);
  return answer;
}

async function refusal(path: string, body: object) {
  const response = await postJson(`${server.url}${path}`, body);
  const { error } = (await response.json()) as { error: { message: string; param: string; code: string } };
  return { status: response.status, ...error };
}

const rowsOf = ({ data }: Answer) => data.map(({ embedding }) => embedding as number[]);
const worst = (row: readonly number[], expected: ArrayLike<number>) =>
  row.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i]!)), 0);

/** The embedding of a file as its parts make it here, without the server. */
async function rowOf(model: string, name: string): Promise<Float32Array> {
  const path = paths.get(model)!;
  const sharp = loadSharp(createRequire(import.meta.url));
  const preprocessor = picturePreprocessor(readPictureFiles(path)!);
  const tiles = preprocessor.tiles(await decodedPicture(golden(name), sharp, PICTURE_LIMITS));
  const { grids } = preprocessor.plan(29, 19);
  const { directory } = await engines.get(path, 'f32');
  const tower = await loadTower(directory, { threads: 1 });
  const row = tower.see([{ patches: preprocessor.patches(tiles), grid: grids[0]! }]).slice();
  tower.close();
  return row;
}

describe.each(MADE_TWO_TOWERS)('a server with $name', ({ name: model, texts, files }) => {
  it('embeds files as transformers does, from opening them to their rows', async () => {
    const rows = rowsOf(await embed({ model, input: files.map(({ file }) => image(file)) }));
    for (const [i, { row }] of files.entries()) expect(worst(rows[i]!, row)).toBeLessThan(2e-6);
  });

  it('embeds texts as transformers does, by the tokenizer of the model', async () => {
    const answer = await embed({ model, input: texts.map(({ text }) => text) });
    const rows = rowsOf(answer);
    for (const [i, { row }] of texts.entries()) expect(worst(rows[i]!, row)).toBeLessThan(2e-6);
    // Without what texts are filled up with.
    const tokens = texts.reduce((sum, one) => sum + one.tokens.length, 0);
    expect(answer.usage.prompt_tokens).toBe(tokens);
    const [alone] = rowsOf(await embed({ model, input: texts[0]!.text }));
    expect(alone).toEqual(rows[0]);
  });

  it('embeds pictures and texts in one request, each as alone, in their order', async () => {
    const [grey] = rowsOf(await embed({ model, input: image('png grey') }));
    const input = [image('png grey'), texts[0]!.text, image('png rgb'), { text: texts[1]!.text }];
    const many = Array.from({ length: 4 }, (_, i) =>
      image(['png rgb', 'png grey', 'gif part', 'png exif 6'][i]!),
    );
    const answer = await embed({ model, input: [...input, ...many] });
    const rows = rowsOf(answer);
    expect(rows[0]).toEqual(grey);
    expect(worst(rows[1]!, texts[0]!.row)).toBeLessThan(2e-6);
    expect(worst(rows[3]!, texts[1]!.row)).toBeLessThan(2e-6);
    expect([rows[4], rows[5]]).toEqual([rows[2], rows[0]]);
    expect(rows[6]).not.toEqual(rows[7]);
    expect(rows[2]!).toEqual([...(await rowOf(model, 'png rgb'))]);
    const ofPicture = model === 'clip' ? 17 : 16;
    expect(answer.usage.prompt_tokens).toBe(
      texts[0]!.tokens.length + texts[1]!.tokens.length + 6 * ofPicture,
    );
  });

  it('gives them in base64 too, from the base64 of a file alone', async () => {
    const given = { image: golden('png rgb').toString('base64') };
    const [floats] = rowsOf(await embed({ model, input: [given] }));
    const { data } = await embed({ model, input: [given], encoding_format: 'base64' });
    const bytes = Buffer.from(data[0]!.embedding as string, 'base64');
    expect(floats!.map((_, i) => bytes.readFloatLE(4 * i))).toEqual(floats);
  });

  it('refuses what is no picture, or has no place for one, by name', async () => {
    const bad = { model, input: ['a', { image: 'data:image/png;base64,PHN2Zz4=' }] };
    expect(await refusal('/v1/embeddings', bad)).toMatchObject({
      status: 400,
      message: expect.stringMatching(/^input\[1\]\.image: .*SVG/),
      param: 'input[1].image',
    });
    const address = { model, input: { image: 'https://example.com/a.png' } };
    expect(await refusal('/v1/embeddings', address)).toMatchObject({
      status: 400,
      message: expect.stringMatching(/^'input\.image' is the address of a picture, and none is fetched here/),
    });
    const many = { model, input: Array.from({ length: 17 }, () => image('gif part')) };
    expect((await refusal('/v1/embeddings', many)).message).toMatch(/has 17 pictures, and may have 16/);
    const both = { model, input: [{ ...image('png rgb'), text: 'a' }] };
    expect((await refusal('/v1/embeddings', both)).message).toMatch(/a picture together with anything else/);
    const documents = [image('png rgb')];
    for (const [path, body] of [
      ['/v1/rerank', { model, query: 'a', documents }],
      ['/pooling', { model, input: documents }],
    ] as const)
      expect((await refusal(path, body)).status).toBe(400);
    expect((await refusal('/v1/embeddings', { model, input: 'a', dimensions: 4 })).message).toMatch(
      /Matryoshka/,
    );
  });

  it('says in the list of models that it takes pictures', async () => {
    const { data } = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(data.find(({ id }) => id === model)).toMatchObject({ input_modalities: ['text', 'image'] });
  });
});
