import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MemoryLedger } from '../../../src/server/web/memory/held-memory.js';
import type { ServedEncoder } from '../../../src/serving/served-model.js';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { madeEmbedder, writeMadeEmbedder } from '../../support/made-embedders.js';
import { type Post, ServedEncoders, serverOf } from '../support/served-encoders.js';

const encoders = new ServedEncoders();
afterAll(() => encoders.close());
let post: Post;
let model: ServedEncoder;

const made = madeEmbedder('bge-m3');
const [first, second] = made.tokens!;

beforeAll(async () => {
  const path = writeMadeEmbedder(join(temporaryFolder('skein-tokens-served'), made.name), made);
  model = await encoders.open('m3', path);
  // Where none is named, the model that has them is taken.
  ({ post } = serverOf([await encoders.open('plain', 'bert-mean'), model]));
});

function expectClose(actual: readonly number[], expected: readonly number[]): void {
  expect(actual.length).toBe(expected.length);
  for (const [i, value] of expected.entries()) expect(Math.abs(actual[i]! - value)).toBeLessThan(2e-5);
}

describe('POST /embed_sparse', () => {
  it('gives the weights of tokens of each text', async () => {
    const { status, body } = await post('/embed_sparse', { inputs: [first!.text, second!.text] });
    expect(status).toBe(200);
    for (const [i, { weights }] of [first!, second!].entries()) {
      expect(body[i].map(({ index }: { index: number }) => index)).toEqual(weights.map(([id]) => id));
      expectClose(
        body[i].map(({ value }: { value: number }) => value),
        weights.map(([, weight]) => weight),
      );
    }
    expect((await post('/embed_sparse', { inputs: first!.text })).body).toEqual([body[0]]);
    expect((await post('/embed_sparse', { inputs: first!.ids })).body).toEqual([body[0]]);
  });

  it('refuses a long text, or cuts it where it is asked to', async () => {
    const inputs = 'the cat '.repeat(100);
    const { status, body } = await post('/embed_sparse', { inputs });
    expect([status, body.error.param, body.error.code]).toEqual([400, 'inputs', 'context_length_exceeded']);
    const cut = await post('/embed_sparse', { inputs, truncate: true, truncation_direction: 'Left' });
    expect([cut.status, cut.body[0].length]).toEqual([200, 2]);
  });
});

describe('POST /embed_all', () => {
  it('gives a vector of each token but the first', async () => {
    const { status, body } = await post('/embed_all', { inputs: [first!.text, second!.text] });
    expect(status).toBe(200);
    for (const [i, { vectors }] of [first!, second!].entries()) {
      expect(body[i].length).toBe(vectors.length);
      for (const [t, vector] of vectors.entries()) expectClose(body[i][t], vector);
    }
  });

  it('refuses more tokens than there is memory for, before it computes any', async () => {
    const small = serverOf([model], new MemoryLedger({ limit: 1 << 20 }));
    const [few, many] = [first!.ids, Array.from({ length: 12 }, () => Array(120).fill(7))];
    expect((await small.post('/embed_all', { inputs: few })).status).toBe(200);
    const { status, body } = await small.post('/embed_all', { inputs: many });
    expect([status, body.error.code]).toEqual([400, 'answer_too_large']);
    expect((await small.post('/embed_sparse', { inputs: many })).status).toBe(200);
  });
});

describe.each(['/embed_sparse', '/embed_all'])('%s', (path) => {
  it.each([
    [{ inputs: 'x', model: 'plain' }, 'model', /gives no (weights|vectors) of tokens .*built without a file/],
    [{ inputs: 'x', model: 'none' }, 'model', /none/],
    [{ inputs: [] }, 'inputs', /inputs/],
    [{ inputs: [[1, 999999]] }, 'inputs', /has the token 999999/],
    [{ inputs: 'x', prompt_name: 'other' }, 'prompt_name', /'?prompt_name'? is "other"/],
    [{}, 'inputs', /inputs/],
  ])('refuses %j', async (fields, param, message) => {
    const { status, body } = await post(path, fields);
    expect([status === 404 ? 400 : status, body.error.param]).toEqual([400, param]);
    expect(body.error.message).toMatch(message);
  });
});
