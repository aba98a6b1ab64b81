import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { vectorOfType } from '../../../src/encoding/vector-types.js';
import type { ServedModel } from '../../../src/serving/served-model.js';
import { FakeEngine } from '../support/fake-engine.js';
import { type Post, ServedEncoders, serverOf } from '../support/served-encoders.js';
import { toyModel } from '../support/toy-server.js';

const encoders = new ServedEncoders();
afterAll(() => encoders.close());
const served: ServedEncoders['open'] = (...given) => encoders.open(...given);

let post: Post;
let metricsText: () => Promise<string>;

function serve(models: ServedModel[]): Post {
  const server = serverOf(models);
  metricsText = server.metricsText;
  return server.post;
}

beforeAll(async () => {
  post = serve([
    toyModel(new FakeEngine(() => []), { id: 'chat' }),
    await served('vectors', 'bert-mean'),
    await served('raw', 'bert-cls'),
    await served('scores', 'bert-score'),
  ]);
});

interface Golden {
  model: string;
  texts?: string[];
  ids: number[];
  types: number[];
  output: number[];
}
const goldens = (
  JSON.parse(readFileSync(new URL('../../goldens/encoders.json', import.meta.url), 'utf8')) as {
    cases: Golden[];
  }
).cases;
const goldenOf = (model: string, count: number) =>
  goldens.find((one) => one.model === model && one.texts?.length === count)!;

function expectClose(actual: ArrayLike<number>, expected: readonly number[]): void {
  expect(actual.length).toBe(expected.length);
  for (const [i, value] of expected.entries()) expect(Math.abs(actual[i]! - value)).toBeLessThan(2e-5);
}

describe('POST /v1/embeddings', () => {
  it("gives OpenAI's answer, with the embeddings of transformers", async () => {
    const golden = goldenOf('bert-mean', 1);
    const { status, body } = await post('/v1/embeddings', { input: golden.texts![0], user: 'me' });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      object: 'list',
      model: 'vectors',
      data: [{ object: 'embedding', index: 0 }],
      usage: { prompt_tokens: golden.ids.length, total_tokens: golden.ids.length },
    });
    expectClose(body.data[0].embedding, golden.output);
  });

  it('gives the same bits in base64, for texts alone, in a list, and as token ids', async () => {
    const golden = goldenOf('bert-mean', 1);
    const [text] = golden.texts!;
    const one = (await post('/v1/embeddings', { input: text })).body.data[0].embedding;
    const list = await post('/v1/embeddings', { input: ['the dog', text, 'x'], encoding_format: 'base64' });
    expect(list.body.data.map(({ index }: { index: number }) => index)).toEqual([0, 1, 2]);
    const bytes = Buffer.from(list.body.data[1].embedding, 'base64');
    expect(Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i))).toEqual(one);
    const ids = await post('/v1/embeddings', { input: golden.ids });
    expect(ids.body.data[0].embedding).toEqual(one);
    const several = await post('/v1/embeddings', { input: [[5, 6], golden.ids] });
    expect(several.body.data[1].embedding).toEqual(one);
    expect(several.body.usage.prompt_tokens).toBe(2 + golden.ids.length);
  });

  it('refuses a text that is too long with the numbers, and cuts it where it is asked to', async () => {
    const long = 'the cat sat on the mat '.repeat(20);
    const { status, body } = await post('/v1/embeddings', { input: ['x', long] });
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ param: 'input', code: 'context_length_exceeded' });
    expect(body.error.message).toMatch(
      /maximum context length is 64 tokens\. However, input 1 has 122, special tokens included\./,
    );
    const cut = await post('/v1/embeddings', { input: long, truncate_prompt_tokens: -1 });
    expect(cut.body.usage.prompt_tokens).toBe(64);
    const short = await post('/v1/embeddings', { input: long, truncate_prompt_tokens: 5 });
    const same = await post('/v1/embeddings', { input: 'the cat sat' });
    expect(short.body.data[0].embedding).toEqual(same.body.data[0].embedding);
    const most = await post('/v1/embeddings', { input: long, truncate_prompt_tokens: 65 });
    expect(most.body.error.message).toBe(
      'truncate_prompt_tokens is 65, but this model takes 64 tokens at most.',
    );
  });

  it("takes texts as objects, as Jina's API has them", async () => {
    const { data } = (await post('/v1/embeddings', { input: ['a cat', 'a dog'] })).body;
    for (const input of [
      [{ text: 'a cat' }, { text: 'a dog' }],
      ['a cat', { text: 'a dog' }],
    ])
      expect((await post('/v1/embeddings', { input })).body.data).toEqual(data);
    expect((await post('/v1/embeddings', { input: { text: 'a cat' } })).body.data).toEqual([data[0]]);
  });

  it.each([
    [[{ image: 'aGk=' }], 'input[0].image', /has a picture, which is not taken: the model reads text alone/],
    [['a', { text: 'a', pdf: 'x' }], 'input[1].pdf', /embeddings of anything but texts/],
    [{ image: 'aGk=' }, 'input.image', /has a picture, which is not taken/],
    [[{ text: 5 }], 'input[0].text', /expected a string/],
    [['a', {}], 'input[1]', /expected a string or an object with a text/],
    [['a', 5], 'input[1]', /expected a string or an object with a text/],
    [[[1], 'a'], 'input[1]', /expected a string or a list of token ids/],
    [{}, 'input', /expected a string, token ids, or a list of either/],
  ])('refuses the input %j by the name of what is wrong', async (input, param, message) => {
    const { status, body } = await post('/v1/embeddings', { input });
    expect([status, body.error.param]).toEqual([400, param]);
    expect(body.error.message).toMatch(message);
  });

  it('cuts a text at the side that is named', async () => {
    const asked = { input: 'a dog sat on the mat', truncate_prompt_tokens: 4 };
    const left = (await post('/v1/embeddings', { ...asked, truncation_side: 'left' })).body.data;
    expect(left).toEqual((await post('/v1/embeddings', { input: 'the mat' })).body.data);
    const right = (await post('/v1/embeddings', { ...asked, truncation_side: 'right' })).body.data;
    expect(right).toEqual((await post('/v1/embeddings', { input: 'a dog' })).body.data);
  });

  it('refuses dimensions of a model that was not trained for it', async () => {
    const { status, body } = await post('/v1/embeddings', { input: 'x', dimensions: 8 });
    expect([status, body.error.param]).toEqual([400, 'dimensions']);
    expect(body.error.message).toMatch(/not trained for embeddings that are cut \(Matryoshka\); it gives 48/);
    expect((await post('/v1/embeddings', { input: 'x', dimensions: 48 })).status).toBe(200);
  });

  it('cuts and normalises the embeddings of a Matryoshka model', async () => {
    const head = {
      kind: 'embedding',
      pooling: 'mean',
      normalize: true,
      matryoshka: [16] as number[],
      layers: [],
      prompts: {},
      defaultPrompt: null,
    } as const;
    const own = serve([await served('nested', 'bert-mean', { head })]);
    const whole = (await own('/v1/embeddings', { input: 'the cat' })).body.data[0].embedding as number[];
    const cut = (await own('/v1/embeddings', { input: 'the cat', dimensions: 16 })).body.data[0].embedding;
    const length = Math.hypot(...whole.slice(0, 16));
    expectClose(
      cut,
      whole.slice(0, 16).map((value) => value / length),
    );
    const { body } = await own('/v1/embeddings', { input: 'x', dimensions: 20 });
    expect(body.error.message).toBe('dimensions is 20; this model gives 16, 48.');
  });

  it.each([
    [{}, 'input', /^The field 'input' is required.$/],
    [{ input: [] }, 'input', /a list that is not empty/],
    [{ input: [''], model: 'vectors', dimensions: 0 }, 'dimensions', /dimensions/],
    [{ input: 5 }, 'input', /expected a string, token ids/],
    [{ input: [[]] }, 'input[0]', /not empty/],
    [{ input: [150] }, 'input', /^The input has the token 150, but this model's vocabulary has 150./],
    [{ input: 'x', encoding_format: 'int8' }, 'encoding_format', /encoding_format/],
    [{ input: 'x', truncate_prompt_tokens: 0 }, 'truncate_prompt_tokens', /expected -1 or at least 1/],
    [{ input: 'x', output_dimension: 3 }, 'output_dimension', /^output_dimension is 3, but this model/],
    [{ input: 'x', late_chunking: true }, 'late_chunking', /does not have late chunking/],
    [{ input: 'x', task: 'code.query' }, 'task', /task/],
    [{ input: 'x', embedding_type: ['float'] }, 'embedding_type', /embedding_type/],
    [
      { input: 'x', normalized: false },
      'normalized',
      /^normalized is false, but this model's embeddings have length 1/,
    ],
    [{ input: 'x', normalize: false }, 'normalize', /^normalize is false/],
  ])('refuses %j with the name of the field', async (body, param, message) => {
    const answer = await post('/v1/embeddings', body);
    expect(answer.status).toBe(400);
    expect(answer.body.error.message).toMatch(message);
    expect(answer.body.error.param).toBe(param);
  });

  it("puts the model's prompt in front of texts, by its name or by what they are for", async () => {
    const head = {
      kind: 'embedding',
      pooling: 'mean',
      normalize: true,
      matryoshka: null,
      layers: [],
      prompts: { query: 'what is ', passage: 'the ', STS: 'as ', other: 'one ' },
      defaultPrompt: 'other',
    } as const;
    const own = serve([await served('prompted', 'bert-mean', { head })]);
    const plain = serve([await served('plain', 'bert-mean')]);
    const vectorOf = async (send: typeof own, body: object, route = '/v1/embeddings') => {
      const { body: answer } = await send(route, body);
      return (answer.data ?? answer.embeddings.float)[0].embedding ?? answer.embeddings.float[0];
    };
    const input = 'a cat';
    for (const [fields, prompt] of [
      [{}, 'one '],
      [{ input_type: 'query' }, 'what is '],
      [{ input_type: 'document' }, 'the '],
      [{ input_type: 'clustering' }, 'one '],
      [{ prompt_name: 'query' }, 'what is '],
      [{ task: 'retrieval.query' }, 'what is '],
      [{ task: 'retrieval.passage', input_type: 'passage' }, 'the '],
      [{ task: 'text-matching' }, 'as '],
    ] as const) {
      const expected = await vectorOf(plain, { input: `${prompt}a cat` });
      expect(await vectorOf(own, { input, ...fields }), prompt).toEqual(expected);
    }
    const cohere = { texts: [input], input_type: 'search_query', embedding_types: ['float'] };
    expect(await vectorOf(own, cohere, '/v2/embed')).toEqual(
      await vectorOf(plain, { input: 'what is a cat' }),
    );
    const ids = [2, 30, 3];
    expect(await vectorOf(own, { input: ids, input_type: 'query' })).toEqual(
      await vectorOf(plain, { input: ids }),
    );
    const { status, body } = await own('/v1/embeddings', { input, prompt_name: 'toString' });
    expect([status, body.error.param]).toEqual([400, 'prompt_name']);
    expect(body.error.message).toContain('"toString"; the model\'s prompts are: query, passage, STS, other.');
  });

  it('refuses more inputs than it takes', async () => {
    const { status, body } = await post('/v1/embeddings', { input: new Array(2049).fill('x') });
    expect([status, body.error.param]).toEqual([400, 'input']);
    expect(body.error.message).toMatch(/it holds 2049 inputs, at most 2048 are taken/);
  });

  it('takes an empty text', async () => {
    const { status, body } = await post('/v1/embeddings', { input: '' });
    expect([status, body.usage.prompt_tokens]).toEqual([200, 2]);
  });
});

describe('POST /v1/score', () => {
  it("gives a cross-encoder's scores of pairs, as transformers does", async () => {
    const golden = goldenOf('bert-score', 2);
    const [first, second] = golden.texts!;
    const { status, body } = await post('/v1/score', { text_1: first, text_2: [second, 'the dog'] });
    expect(status).toBe(200);
    expect(body).toMatchObject({ object: 'list', model: 'scores' });
    expect(body.id).toMatch(/^score-/);
    expect(body.data.map(({ index, object }: Record<string, unknown>) => [index, object])).toEqual([
      [0, 'score'],
      [1, 'score'],
    ]);
    expectClose([body.data[0].score], golden.output);
    const pairs = await post('/v1/score', { text_1: [first, first], text_2: [second, 'the dog'] });
    expect(pairs.body.data).toEqual(body.data);
    expect(pairs.body.usage).toEqual(body.usage);
  });

  it('gives the cosine of the embeddings where the model embeds', async () => {
    const { body } = await post('/v1/score', {
      model: 'raw',
      text_1: 'the cat',
      text_2: ['a dog', 'the cat'],
    });
    const texts = await post('/v1/embeddings', { model: 'raw', input: ['the cat', 'a dog'] });
    const [a, b] = texts.body.data.map(({ embedding }: { embedding: number[] }) => embedding);
    const dot = (x: number[], y: number[]) => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
    expectClose(
      body.data.map(({ score }: { score: number }) => score),
      [dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b)), 1],
    );
  });

  it('refuses lists that are no pairs, and pairs that are too long', async () => {
    const uneven = await post('/v1/score', { text_1: ['a', 'b'], text_2: ['c'] });
    expect([uneven.status, uneven.body.error.param]).toEqual([400, 'text_1']);
    expect(uneven.body.error.message).toMatch(/as many as 'text_2' has \(1\), but it has 2/);
    const long = await post('/v1/score', { text_1: 'a', text_2: ['b', 'the cat '.repeat(40)] });
    expect(long.body.error).toMatchObject({ param: 'text_2', code: 'context_length_exceeded' });
    expect(long.body.error.message).toMatch(/pair 1 has 84/);
    const cut = await post('/v1/score', {
      text_1: 'a',
      text_2: 'the cat '.repeat(40),
      truncate_prompt_tokens: 20,
    });
    expect(cut.body.usage.prompt_tokens).toBe(20);
  });
});

describe('POST /v1/rerank', () => {
  const documents = ['the dog', { text: 'a bird can fly high' }, 'the cat sat on the mat', 'the dog'];

  it('sorts the documents, the best first, with equal ones in their order', async () => {
    const { status, body } = await post('/v1/rerank', { query: 'what can fly?', documents });
    expect(status).toBe(200);
    expect(body).toMatchObject({ object: 'list', model: 'scores' });
    const { data } = (
      await post('/v1/score', {
        text_1: 'what can fly?',
        text_2: documents.map((one) => (typeof one === 'string' ? one : one.text)),
      })
    ).body;
    const expected = [0, 1, 2, 3].sort((a, b) => data[b].score - data[a].score || a - b);
    expect(body.results.map(({ index }: Record<string, unknown>) => index)).toEqual(expected);
    for (const { index, relevance_score, document } of body.results) {
      expect(relevance_score).toBe(data[index].score);
      expect(document.text).toBe((documents[index] as { text?: string }).text ?? documents[index]);
    }
    expect(expected.indexOf(0)).toBe(expected.indexOf(3) - 1);
  });

  it('gives top_n of them, without their texts where these are not wanted', async () => {
    const asked = { query: 'fly', documents, top_n: 2, return_documents: false, model: 'vectors' };
    const { body } = await post('/v1/rerank', asked);
    expect(body.results.map((one: object) => Object.keys(one))).toEqual([
      ['index', 'relevance_score'],
      ['index', 'relevance_score'],
    ]);
  });

  it("ranks in the form of Voyage's API too, whose clients read data", async () => {
    const asked = { query: 'fly', documents, model: 'scores' };
    const { body } = await post('/v1/rerank', { ...asked, top_k: 2, return_documents: true });
    const { results } = (await post('/v1/rerank', { ...asked, top_n: 2 })).body;
    expect(body.results).toEqual(results);
    expect(body.data).toEqual(
      results.map(({ document, ...rest }: { document: { text: string } }) => {
        return { ...rest, document: document.text };
      }),
    );
    const plain = (await post('/v1/rerank', asked)).body;
    expect(plain.data.map((one: object) => Object.keys(one))).toEqual(
      documents.map(() => ['index', 'relevance_score']),
    );
    const long = { ...asked, documents: ['the cat '.repeat(50)] };
    expect((await post('/v1/rerank', { ...long, truncation: true })).body.usage.total_tokens).toBe(64);
    expect((await post('/v1/rerank', { ...long, truncation: false })).body.error.code).toBe(
      'context_length_exceeded',
    );
  });

  it.each([
    [{ query: 'x', documents: ['x'], top_n: 1, top_k: 2 }, 'top_k'],
    [{ query: 'x', documents: ['x'], top_k: 0 }, 'top_k'],
    [{ query: 'x', documents: ['x'], truncation: false, truncate_prompt_tokens: 5 }, 'truncation'],
    [{ query: 'x' }, 'documents'],
    [{ documents: ['x'] }, 'query'],
    [{ query: 'x', documents: [] }, 'documents'],
    [{ query: 'x', documents: [5] }, 'documents[0]'],
    [{ query: 'x', documents: ['x'], top_n: 0 }, 'top_n'],
    [{ query: 'x', documents: ['x'], max_chunks_per_doc: 2 }, 'max_chunks_per_doc'],
    [{ query: 'x', documents: ['the cat '.repeat(50)] }, 'documents'],
  ])('refuses %j with the name of the field', async (body, param) => {
    const answer = await post('/v1/rerank', body);
    expect([answer.status, answer.body.error.param]).toEqual([400, param]);
  });
});

describe('types of values', () => {
  const asked = { model: 'vectors', input: ['the cat', 'a dog'] };

  it.each(['int8', 'uint8', 'binary', 'ubinary'] as const)(
    'are given as %s, also in base64',
    async (type) => {
      const { body: floats } = await post('/v1/embeddings', asked);
      const { body } = await post('/v1/embeddings', { ...asked, output_dtype: type });
      const base64 = await post('/v1/embeddings', {
        ...asked,
        output_dtype: type,
        encoding_format: 'base64',
      });
      for (const [i, { embedding }] of floats.data.entries()) {
        const expected = vectorOfType(Float32Array.from(embedding), type);
        expect(body.data[i].embedding).toEqual([...expected]);
        const bytes = Buffer.from(base64.body.data[i].embedding, 'base64');
        expect(bytes.equals(Buffer.from(expected.buffer))).toBe(true);
      }
    },
  );

  it("are asked for with Voyage's other fields, which must not contradict OpenAI's", async () => {
    const long = { ...asked, input: 'the cat '.repeat(50) };
    expect((await post('/v1/embeddings', { ...long, truncation: false })).status).toBe(400);
    const cut = (await post('/v1/embeddings', { ...long, truncation: true })).body;
    expect(cut.data[0].embedding).toEqual(
      (await post('/v1/embeddings', { ...long, truncate_prompt_tokens: -1 })).body.data[0].embedding,
    );
    for (const [fields, param] of [
      [{ truncation: false, truncate_prompt_tokens: 8 }, 'truncation'],
      [{ truncation: true, truncate: false }, 'truncate'],
      [{ dimensions: 8, output_dimension: 16 }, 'output_dimension'],
      [{ output_dtype: 'int4' }, 'output_dtype'],
    ] as const) {
      const { status, body } = await post('/v1/embeddings', { ...asked, ...fields });
      expect([status, body.error.param]).toEqual([400, param]);
    }
  });
});

describe("Jina's fields", () => {
  const asked = { model: 'raw', input: ['the cat', 'a dog'] };
  const rowsOf = async (fields: object) => {
    const { status, body } = await post('/v1/embeddings', { ...asked, ...fields });
    expect(status).toBe(200);
    return body.data.map(({ embedding }: { embedding: unknown }) => embedding);
  };

  it('give the values in a type, or in base64', async () => {
    const floats = await rowsOf({ embedding_type: 'float', encoding_format: 'float' });
    expect(floats).toEqual(await rowsOf({}));
    expect(await rowsOf({ embedding_type: 'base64' })).toEqual(await rowsOf({ encoding_format: 'base64' }));
    for (const type of ['binary', 'ubinary'])
      expect(await rowsOf({ embedding_type: type, encoding_format: 'float' })).toEqual(
        await rowsOf({ output_dtype: type }),
      );
  });

  it('bring embeddings to length 1, or leave them as they are', async () => {
    const [whole] = await rowsOf({ normalized: false });
    expect(await rowsOf({})).toEqual(await rowsOf({ normalized: false }));
    const length = Math.hypot(...whole);
    expect(Math.abs(length - 1)).toBeGreaterThan(0.1);
    const [unit] = await rowsOf({ normalized: true });
    expectClose(
      unit,
      whole.map((value: number) => value / length),
    );
    expect(await rowsOf({ normalize: true, truncate: true })).toEqual(await rowsOf({ normalized: true }));
  });

  it.each([
    [{ embedding_type: 'int8' }, 'embedding_type'],
    [{ embedding_type: 'binary', output_dtype: 'int8' }, 'embedding_type'],
    [{ embedding_type: 'binary', encoding_format: 'base64' }, 'embedding_type'],
    [{ normalized: true, normalize: false }, 'normalize'],
    [{ task: 'retrieval.query', input_type: 'document' }, 'task'],
    [{ return_multivector: true }, 'return_multivector'],
  ])('are refused by name in %j', async (fields, param) => {
    const { status, body } = await post('/v1/embeddings', { ...asked, ...fields });
    expect([status, body.error.param]).toEqual([400, param]);
  });
});

describe('POST /v2/embed', () => {
  const texts = ['the cat', 'a bird can fly high'];
  const asked = { model: 'vectors', texts, input_type: 'search_document' };

  it("embeds as /v1/embeddings does, in Cohere's form and all types that are asked for", async () => {
    const types = ['float', 'int8', 'uint8', 'binary', 'ubinary', 'base64'];
    const { body } = await post('/v2/embed', { ...asked, embedding_types: types });
    const plain = (await post('/v1/embeddings', { model: 'vectors', input: texts })).body;
    const base64 = (
      await post('/v1/embeddings', { model: 'vectors', input: texts, encoding_format: 'base64' })
    ).body;
    expect(Object.keys(body.embeddings)).toEqual(types);
    expect(body).toMatchObject({
      texts,
      meta: { api_version: { version: '2' }, billed_units: { input_tokens: plain.usage.prompt_tokens } },
      response_type: 'embeddings_by_type',
    });
    for (const [i, { embedding }] of plain.data.entries()) {
      const row = Float32Array.from(embedding);
      expect(body.embeddings.float[i]).toEqual(embedding);
      expect(body.embeddings.int8[i]).toEqual([...vectorOfType(row, 'int8')]);
      expect(body.embeddings.ubinary[i]).toEqual([...vectorOfType(row, 'ubinary')]);
      expect(body.embeddings.base64[i]).toBe(base64.data[i].embedding);
    }
    const inParts = texts.map((text) => ({ content: [{ type: 'text', text }] }));
    expect(
      (await post('/v2/embed', { ...asked, texts: undefined, inputs: inParts })).body.embeddings,
    ).toEqual({
      float: body.embeddings.float,
    });
  });

  it('cuts the side of a long text that is named, or none', async () => {
    const long = { ...asked, texts: [`${'the cat '.repeat(50)}a dog`], max_tokens: 4 };
    const embedded = async (fields: object) => (await post('/v2/embed', { ...long, ...fields })).body;
    const alone = async (text: string) => (await embedded({ texts: [text] })).embeddings.float;
    expect((await embedded({})).embeddings.float).toEqual(await alone('the cat'));
    expect((await embedded({ truncate: 'START' })).embeddings.float).toEqual(await alone('a dog'));
    const whole = { truncate: 'NONE', max_tokens: undefined };
    expect((await embedded(whole)).error).toMatchObject({
      param: 'texts',
      message: expect.stringMatching(/special tokens included.* have it cut by truncate\.$/),
    });
    const inputs = [{ content: [{ type: 'text', text: long.texts[0] }] }];
    expect((await embedded({ ...whole, texts: undefined, inputs })).error.param).toBe('inputs');
    expect((await embedded({ truncate: 'NONE' })).error.param).toBe('max_tokens');
    expect((await embedded({ max_tokens: 1 })).error).toMatchObject({
      param: 'max_tokens',
      message: 'max_tokens is 1, but special tokens alone take 2.',
    });
  });

  it.each([
    [{ texts: undefined }, 'texts'],
    [{ inputs: [{ content: [{ type: 'text', text: 'a' }] }] }, 'inputs'],
    [{ texts: [] }, 'texts'],
    [{ input_type: 'image' }, 'input_type'],
    [{ embedding_types: ['int4'] }, 'embedding_types'],
    [{ texts: undefined, inputs: [{ content: [{ type: 'image_url', image_url: {} }] }] }, 'inputs'],
    [{ output_dimension: 0 }, 'output_dimension'],
    [{ images: ['data:image/png;base64,'] }, 'images'],
    [{ output_dimension: 8 }, 'output_dimension'],
  ])('refuses %o by its field', async (fields, param) => {
    const { status, body } = await post('/v2/embed', { ...asked, ...fields });
    expect([status, body.error.param]).toEqual([400, expect.stringMatching(new RegExp(`^${param}`))]);
  });
});

it("names Cohere's fields where those of other APIs are sent to its routes", async () => {
  for (const [path, fields, param, here] of [
    ['/v2/embed', { texts: ['a'], encoding_format: 'base64' }, 'encoding_format', 'embedding_types'],
    ['/v2/embed', { texts: ['a'], embedding_type: 'binary' }, 'embedding_type', 'embedding_types'],
    ['/v2/embed', { texts: ['a'], dimensions: 8 }, 'dimensions', 'output_dimension'],
    ['/v2/embed', { texts: ['a'], truncate_prompt_tokens: 8 }, 'truncate_prompt_tokens', 'max_tokens'],
    ['/v2/embed', { texts: ['a'], truncation: false }, 'truncation', 'truncate'],
    ['/v2/embed', { input: ['a'] }, 'input', 'texts'],
    ['/v2/rerank', { query: 'a', documents: ['b'], top_k: 1 }, 'top_k', 'top_n'],
    ['/v1/rerank', { query: 'a', documents: ['b'], texts: ['c'] }, 'texts', 'documents'],
    ['/v1/rerank', { query: 'a', documents: ['b'], return_text: true }, 'return_text', 'return_documents'],
    ['/v1/score', { text_1: 'a', text_2: 'b', queries: 'c' }, 'queries', 'text_1'],
    ['/v2/rerank', { query: 'a', documents: ['b'], truncation: false }, 'truncation', 'max_tokens_per_doc'],
  ] as const) {
    const { status, body } = await post(path, fields);
    expect([status, body.error.param]).toEqual([400, param]);
    expect(body.error.message).toContain(`use '${here}'`);
  }
});

describe('POST /v2/rerank', () => {
  it("ranks as /v1/rerank does, in Cohere's form, and cuts long documents", async () => {
    const asked = { model: 'scores', query: 'what can fly?', documents: ['the dog', 'a bird can fly high'] };
    const { body } = await post('/v2/rerank', { ...asked, top_n: 1 });
    const jina = (await post('/v1/rerank', { ...asked, top_n: 1 })).body.results[0];
    expect(body).toEqual({
      id: expect.any(String),
      results: [{ index: jina.index, relevance_score: jina.relevance_score }],
      meta: {
        api_version: { version: '2' },
        billed_units: { search_units: 1 },
        tokens: { input_tokens: expect.any(Number) },
      },
    });
    const [{ document }] = (await post('/v2/rerank', { ...asked, top_n: 1, return_documents: true })).body
      .results;
    expect(document).toEqual({ text: asked.documents[jina.index] });
    const long = { ...asked, documents: ['the cat '.repeat(50)], max_tokens_per_doc: 12 };
    expect((await post('/v2/rerank', long)).body.meta.tokens.input_tokens).toBe(12);
    const most = await post('/v2/rerank', { ...asked, max_tokens_per_doc: 65 });
    expect(most.body.error.message).toBe('max_tokens_per_doc is 65, but this model takes 64 tokens at most.');
    const refused = await post('/v2/rerank', { ...asked, max_tokens_per_doc: 0 });
    expect([refused.status, refused.body.error.param]).toEqual([400, 'max_tokens_per_doc']);
  });
});

describe('a model of another kind', () => {
  it.each([
    [
      '/v1/embeddings',
      { model: 'chat', input: 'x' },
      "The model 'chat' embeds no texts; 'vectors', 'raw' would.",
    ],
    [
      '/v1/embeddings',
      { model: 'scores', input: 'x' },
      "The model 'scores' embeds no texts; 'vectors', 'raw' would.",
    ],
    [
      '/v1/score',
      { model: 'chat', text_1: 'x', text_2: 'y' },
      "The model 'chat' scores no texts; 'scores', 'vectors', 'raw' would.",
    ],
    [
      '/v1/chat/completions',
      { model: 'vectors', messages: [{ role: 'user', content: 'x' }] },
      "The model 'vectors' generates no text; 'chat' would.",
    ],
  ])('is refused by %s %j', async (path, body, message) => {
    const answer = await post(path, body);
    expect([answer.status, answer.body.error.param, answer.body.error.message]).toEqual([
      400,
      'model',
      message,
    ]);
  });

  it('is not the same as one that is not there', async () => {
    const { status, body } = await post('/v1/embeddings', { model: 'other', input: 'x' });
    expect([status, body.error.code]).toEqual([404, 'model_not_found']);
  });
});

it('counts requests and their tokens in the metrics', async () => {
  const own = serve([await served('counted', 'bert-mean')]);
  await own('/v1/embeddings', { input: ['the cat', 'x'] });
  await own('/v1/embeddings', { input: [] });
  const text = await metricsText();
  expect(text).toMatch(/vllm:prompt_tokens_total\{[^}]*model_name="counted"[^}]*\} 7/);
  expect(text).toMatch(
    /vllm:request_success_total\{[^}]*model_name="counted"[^}]*finished_reason="stop"[^}]*\} 1/,
  );
});
