import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { type MadeEmbedder, madeEmbedder, writeMadeEmbedder } from '../../support/made-embedders.js';
import { FakeEngine } from '../support/fake-engine.js';
import { type Post, ServedEncoders, serverOf } from '../support/served-encoders.js';
import { toyModel } from '../support/toy-server.js';

const folder = temporaryFolder('skein-pooling');
const encoders = new ServedEncoders();
afterAll(() => encoders.close());
let post: Post;

const m3 = madeEmbedder('bge-m3');
const classes = madeEmbedder('bert-classes');
const [golden] = m3.tokens!;

beforeAll(async () => {
  const made = (one: MadeEmbedder) => encoders.open(one.name, writeMadeEmbedder(join(folder, one.name), one));
  ({ post } = serverOf([
    toyModel(new FakeEngine(() => []), { id: 'chat' }),
    await encoders.open('vectors', 'bert-mean'),
    await encoders.open('raw', 'bert-cls'),
    await made(m3),
    await made(classes),
    await encoders.open('scores', 'bert-score'),
  ]));
});

function expectClose(actual: readonly number[], expected: readonly number[]): void {
  expect(actual.length).toBe(expected.length);
  for (const [i, value] of expected.entries()) expect(Math.abs(actual[i]! - value)).toBeLessThan(2e-5);
}

const floatsOf = (text: string) => {
  const bytes = Buffer.from(text, 'base64');
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
};

describe('POST /pooling', () => {
  it("has the embeddings in vLLM's form", async () => {
    const asked = { model: 'vectors', input: ['a cat', 'a dog'] };
    const { body } = await post('/v1/embeddings', asked);
    for (const task of [undefined, 'embed']) {
      const { body: pooled } = await post('/pooling', { ...asked, task });
      expect(pooled).toMatchObject({ id: expect.stringMatching(/^pool-/), object: 'list', model: 'vectors' });
      expect(pooled.usage).toEqual(body.usage);
      expect(pooled.data).toEqual(
        body.data.map(({ embedding: data, index }: { embedding: number[]; index: number }) => {
          return { index, object: 'pooling', data };
        }),
      );
    }
    const unit = await post('/v1/embeddings', { input: 'a cat', model: 'raw', normalized: true });
    for (const name of ['use_activation', 'normalize']) {
      const { body: brought } = await post('/pooling', { input: 'a cat', model: 'raw', [name]: true });
      expect(brought.data[0].data).toEqual(unit.body.data[0].embedding);
    }
  });

  it('has the scores of labels of a classifier, and those of a cross-encoder, which has one', async () => {
    const input = ['a cat', 'the dog'];
    const { data } = (await post('/classify', { input, model: classes.name })).body;
    const rows = data.map(({ probs }: { probs: number[] }) => probs);
    for (const task of [undefined, 'classify']) {
      const { body } = await post('/pooling', { input, model: classes.name, task });
      expect(body.data.map((one: { data: number[] }) => one.data)).toEqual(rows);
    }
    const logits = (await post('/classify', { input, model: classes.name, use_activation: false })).body.data;
    const raw = await post('/pooling', { input, model: classes.name, use_activation: false });
    expect(raw.body.data[1].data).toEqual(logits[1].probs);
    const one = (await post('/classify', { input, model: 'scores' })).body.data;
    for (const task of [undefined, 'classify', 'score']) {
      const { body } = await post('/pooling', { input, model: 'scores', task });
      expect(body.data[1].data).toEqual(one[1].probs);
    }
  });

  it('has a vector of each token but the first, and weights of those that are not special', async () => {
    const asked = { model: m3.name, input: [golden!.text, 'a dog'] };
    const { body } = await post('/pooling', { ...asked, task: 'token_embed' });
    const { vectors } = golden!;
    expect(body.data[0].data.length).toBe(vectors.length);
    for (const [t, vector] of vectors.entries()) expectClose(body.data[0].data[t], vector);
    const inBase64 = await post('/pooling', { ...asked, task: 'token_embed', encoding_format: 'base64' });
    expect(floatsOf(inBase64.body.data[0].data)).toEqual(body.data[0].data.flat());

    const { body: weighed } = await post('/pooling', { ...asked, task: 'token_classify' });
    const weights: number[] = weighed.data[0].data;
    expect(weights.length).toBe(golden!.ids.length - 2);
    for (const [id, weight] of golden!.weights) {
      const own = weights.filter((_, i) => golden!.ids[i + 1] === id);
      expectClose([Math.max(...own)], [weight]);
    }
    expect(weighed.data[1].data.length).toBe(2);
    // None of these ids is special.
    const ids = golden!.ids.slice(1, -1);
    const ofIds = await post('/pooling', { model: m3.name, input: ids, task: 'token_classify' });
    expect(ofIds.body.data[0].data.length).toBe(ids.length);
  });

  it('takes the model that has the task, where none is named', async () => {
    const models: string[] = [];
    for (const task of [undefined, 'embed', 'classify', 'score', 'token_embed'])
      models.push((await post('/pooling', { input: 'a cat', task })).body.model);
    expect(models).toEqual(['vectors', 'vectors', 'bert-classes', 'scores', 'bge-m3']);
  });

  it.each([
    [{ task: 'classify', model: 'vectors' }, 'model', /'vectors' classifies no texts; 'bert-classes', 'sco/],
    [{ task: 'score', model: 'bert-classes' }, 'model', /'bert-classes' scores no texts/],
    [{ task: 'embed', model: 'scores' }, 'model', /'scores' embeds no texts/],
    [{ task: 'token_embed', model: 'vectors' }, 'model', /gives no vectors of tokens .*built without a file/],
    [{ task: 'token_classify', model: 'vectors' }, 'model', /gives no weights of tokens/],
    [{ model: 'chat' }, 'model', /'chat' embeds, scores or classifies no texts/],
    [
      { task: 'plugin' },
      'task',
      /expected one of 'embed', 'classify', 'score', 'token_embed', 'token_classify'/,
    ],
    [{ task: 'classify', dimensions: 4 }, 'dimensions', /not for the task classify/],
    [{ task: 'token_embed', model: 'bge-m3', use_activation: false }, 'use_activation', /not for the task/],
    [
      { task: 'embed', use_activation: false },
      'use_activation',
      /'?use_activation'? is false, but this model/,
    ],
    [{ use_activation: true, normalize: false }, 'normalize', /contradicts 'use_activation'/],
    [{ input: 'the cat '.repeat(100) }, 'input', /maximum context length/],
  ])('refuses %j', async (fields, param, message) => {
    const { status, body } = await post('/pooling', { input: 'a cat', ...fields });
    expect([status, body.error.param]).toEqual([400, param]);
    expect(body.error.message).toMatch(message);
  });
});
