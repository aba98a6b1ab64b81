import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../support/fresh-folders.js';
import { type MadeEmbedder, madeEmbedder, writeMadeEmbedder } from '../../support/made-embedders.js';
import { type Post, ServedEncoders, serverOf } from '../support/served-encoders.js';

const folder = temporaryFolder('skein-classify');
const encoders = new ServedEncoders();
afterAll(() => encoders.close());
let post: Post;

const classes = madeEmbedder('bert-classes');
const several = madeEmbedder('distilbert-labels');
/** Its pairs go through a chat template. */
const ofTemplate = madeEmbedder('qwen3-reranker');

beforeAll(async () => {
  const served = (made: MadeEmbedder) =>
    encoders.open(made.name, writeMadeEmbedder(join(folder, made.name), made));
  const models = [
    await served(classes),
    await served(several),
    await encoders.open('vectors', 'bert-mean'),
    await encoders.open('scores', 'bert-score'),
    await served(ofTemplate),
  ];
  ({ post } = serverOf(models));
});

const textsOf = ({ classes: cases }: MadeEmbedder) => cases!.filter(({ input }) => typeof input === 'string');
const pairOf = ({ classes: cases }: MadeEmbedder) => cases!.find(({ input }) => typeof input !== 'string')!;

function expectClose(actual: readonly number[], expected: readonly number[]): void {
  expect(actual.length).toBe(expected.length);
  for (const [i, value] of expected.entries()) expect(Math.abs(actual[i]! - value)).toBeLessThan(1e-5);
}

const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);

describe('POST /classify', () => {
  it("gives the scores of all labels in vLLM's form, as transformers' pipeline does", async () => {
    const [golden] = textsOf(classes);
    const { status, body } = await post('/classify', { input: [golden!.input, 'the dog'] });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      id: expect.stringMatching(/^classify-/),
      object: 'list',
      model: 'bert-classes',
      labels: ['joy', 'anger', 'neutral'],
      usage: { prompt_tokens: golden!.ids.length + 4, total_tokens: golden!.ids.length + 4 },
    });
    const [one, two] = body.data;
    expectClose(one.probs, golden!.scores);
    expect(one).toMatchObject({ index: 0, label: 'joy', num_classes: 3 });
    expect(two.index).toBe(1);
    expect(Math.abs(sum(two.probs) - 1)).toBeLessThan(1e-6);
    const ofIds = await post('/classify', { input: golden!.ids });
    expect(ofIds.body.data[0].probs).toEqual(one.probs);
  });

  it('gives each label a score of its own where any number of them may be right', async () => {
    const [golden] = textsOf(several);
    const { body } = await post('/classify', { model: several.name, input: golden!.input });
    expectClose(body.data[0].probs, golden!.scores);
    expect(sum(body.data[0].probs)).toBeGreaterThan(1.1);
  });

  it('gives the logits without the activation', async () => {
    const [golden] = textsOf(several);
    for (const name of ['use_activation', 'activation']) {
      const { body } = await post('/classify', { model: several.name, input: golden!.input, [name]: false });
      const logits: number[] = body.data[0].probs;
      expectClose(
        logits.map((x) => 1 / (1 + Math.exp(-x))),
        golden!.scores,
      );
    }
  });

  it('cuts a long text where it is asked to, and refuses it otherwise', async () => {
    const input = 'the cat '.repeat(100);
    const cut = await post('/classify', { input, truncate_prompt_tokens: 5 });
    expect(cut.body.usage.prompt_tokens).toBe(5);
    const { status, body } = await post('/classify', { input: ['x', input] });
    expect([status, body.error.param, body.error.code]).toEqual([400, 'input', 'context_length_exceeded']);
    expect(body.error.message).toMatch(/input 1 has 202/);
  });

  it.each([
    [{}, 'input', /required/],
    [{ input: [] }, 'input', /none of them empty/],
    [{ input: [150] }, 'input', /token 150/],
    [{ input: 'x', use_activation: 1 }, 'use_activation', /expected true or false/],
    [{ input: 'x', use_activation: true, activation: false }, 'activation', /contradicts 'use_activation'/],
    [{ input: 'x', messages: [] }, 'messages', /conversations/],
    [{ input: 'x', model: 'vectors' }, 'model', /'vectors' classifies no texts; 'bert-classes', 'dist/],
    [{ input: new Array(2049).fill('x') }, 'input', /at most 2048/],
  ])('refuses %o', async (fields, param, message) => {
    const { status, body } = await post('/classify', fields);
    expect([status, body.error.param]).toEqual([400, param]);
    expect(body.error.message).toMatch(message);
  });

  it.each([
    ['/v1/embeddings', { input: 'x' }, "The model 'bert-classes' embeds no texts; 'vectors' would."],
    [
      '/v1/rerank',
      { query: 'x', documents: ['y'] },
      "The model 'bert-classes' scores no texts; 'scores', 'qwen3-reranker', 'vectors' would.",
    ],
  ])('has a model that %s refuses', async (path, fields, message) => {
    const { status, body } = await post(path, { ...fields, model: classes.name });
    expect([status, body.error.message]).toEqual([400, message]);
  });

  it('gives a cross-encoder, which has a single label, the score of it', async () => {
    const pair = { model: 'scores', text_1: 'what can fly?', text_2: 'a bird can fly high' };
    const [{ score }] = (await post('/v1/score', pair)).body.data;
    const inputs = [pair.text_1, pair.text_2];
    const { body } = await post('/predict', { model: 'scores', inputs });
    expect(body).toEqual([{ label: 'LABEL_0', score: Math.fround(score) }]);
    const [{ score: logit }] = (await post('/predict', { model: 'scores', inputs, raw_scores: true })).body;
    expectClose([1 / (1 + Math.exp(-logit))], [score]);
    const { data } = (await post('/classify', { model: 'scores', input: 'a bird' })).body;
    const [{ score: single }] = (await post('/predict', { model: 'scores', inputs: 'a bird' })).body;
    expect(data).toEqual([{ index: 0, label: 'LABEL_0', probs: [single], num_classes: 1 }]);
  });

  it('takes pairs, and no single text, of a model whose pairs go through a chat template', async () => {
    const { pair, score } = ofTemplate.pairs![0]!;
    const { body } = await post('/predict', { model: ofTemplate.name, inputs: [pair] });
    expectClose([body[0][0].score], [score]);
    const single = await post('/classify', { model: ofTemplate.name, input: 'a bird' });
    expect([single.status, single.body.error.param]).toEqual([400, 'input']);
    expect(single.body.error.message).toMatch(/scores pairs of texts, .* it takes no single text\.$/);
  });

  it('scores by an instruction, under two names, and refuses it where a model has no place for it', async () => {
    const { pair } = ofTemplate.pairs![0]!;
    const [query, document] = pair;
    const asked = { model: ofTemplate.name, query, documents: [document] };
    const scoreOf = async (fields: object) =>
      (await post('/v1/rerank', { ...asked, ...fields })).body.results[0].relevance_score;
    const [own, told] = [await scoreOf({}), await scoreOf({ instruction: 'the dog sat' })];
    expect(told).not.toBe(own);
    expect(await scoreOf({ instruct: 'the dog sat' })).toBe(told);
    const score = { text_1: query, text_2: document, model: ofTemplate.name, instruction: 'the dog sat' };
    expect((await post('/v1/score', score)).body.data[0].score).toBe(told);
    const { body: cohere } = await post('/v2/rerank', { ...asked, instruction: 'the dog sat' });
    expect(cohere.results[0].relevance_score).toBe(told);
    for (const model of ['scores', 'vectors']) {
      const { status, body } = await post('/v1/rerank', { ...asked, model, instruction: 'x' });
      expect([status, body.error.param]).toEqual([400, 'instruction']);
      expect(body.error.message).toMatch(/^instruction is for models whose pairs go through a chat template/);
    }
  });

  it('is refused where no model classifies', async () => {
    const other = serverOf([await encoders.open('vectors', 'bert-mean')]);
    const { status, body } = await other.post('/classify', { input: 'x' });
    expect([status, body.error.code]).toEqual([400, 'model_not_supported']);
    expect(body.error.message).toBe('No model of this server classifies texts.');
  });
});

describe('POST /predict', () => {
  it('gives the labels of a text, the likeliest first', async () => {
    const [golden] = textsOf(classes);
    const { status, body } = await post('/predict', { inputs: golden!.input });
    expect([status, body.map(({ label }: { label: string }) => label)]).toEqual([
      200,
      ['joy', 'neutral', 'anger'],
    ]);
    const [joy, anger, neutral] = golden!.scores;
    expectClose(
      body.map(({ score }: { score: number }) => score),
      [joy!, neutral!, anger!],
    );
    expect((await post('/predict', { inputs: [golden!.input] })).body).toEqual(body);
  });

  it('gives those of a pair, and of a batch of both', async () => {
    const { input, scores } = pairOf(classes);
    const pair = (await post('/predict', { inputs: input })).body;
    const scoreOf = (name: string) => pair.find(({ label }: { label: string }) => label === name).score;
    expectClose(['joy', 'anger', 'neutral'].map(scoreOf), scores);
    const [text] = textsOf(classes);
    const batch = await post('/predict', { inputs: [[text!.input], input] });
    expect(batch.body).toEqual([(await post('/predict', { inputs: text!.input })).body, pair]);
    const { body: raw } = await post('/predict', { inputs: input, raw_scores: true });
    expect(Math.abs(sum(raw.map(({ score }: { score: number }) => score)) - 1)).toBeGreaterThan(0.01);
  });

  it('cuts a long text at the side that is named, and refuses it otherwise', async () => {
    const inputs = `${'the cat '.repeat(100)}a dog`;
    const { status, body } = await post('/predict', { inputs });
    expect([status, body.error.param]).toEqual([400, 'inputs']);
    expect(body.error.message).toMatch(/or have it cut by truncate\.$/);
    const [right, left] = [{ truncate: true }, { truncate: true, truncation_direction: 'Left' }];
    const answers = await Promise.all(
      [right, left].map(async (fields) => (await post('/predict', { inputs, ...fields })).body),
    );
    expect(answers[0].length).toBe(3);
    expect(answers[0]).not.toEqual(answers[1]);
  });

  it.each([
    [{}, 'inputs'],
    [{ inputs: [] }, 'inputs'],
    [{ inputs: ['a', 'b', 'c'] }, 'inputs'],
    [{ inputs: [['a', 'b', 'c']] }, 'inputs'],
    [{ inputs: new Array(2049).fill(['x']) }, 'inputs'],
    [{ inputs: 'a', truncation_direction: 'up' }, 'truncation_direction'],
    [{ inputs: 'a', model: 'vectors' }, 'model'],
  ])('refuses %o', async (fields, param) => {
    const { status, body } = await post('/predict', fields);
    expect([status, body.error.param.split('[')[0]]).toEqual([400, param]);
  });
});
