import { describe, expect, it } from 'vitest';
import type { ModelLife } from '../../../../src/server/answering/model-life.js';
import { readModelFacts } from '../../../../src/serving/model-facts.js';
import { ModelState } from '../../../../src/serving/model-state.js';
import type { StoredModel } from '../../../../src/serving/on-demand/model-store.js';
import type { ServedEncoder } from '../../../../src/serving/served-model.js';
import { tinyModelPath } from '../../../../tools/support/test-engine.js';
import { ToldStatistics } from '../../support/served-models.js';
import { templatedCodec } from '../../support/toy-codec.js';
import { say, toyServer } from '../../support/toy-server.js';

const facts = () => readModelFacts(tinyModelPath('gguf'));

/** An encoder whose embedding of a text is its length, and 0. */
function encoder(fields: Partial<ServedEncoder> = {}): ServedEncoder {
  return {
    kind: 'encoder',
    id: 'vectors',
    aliases: [],
    created: 1_700_000_000,
    maxSeqLen: 16,
    state: new ModelState(),
    statistics: new ToldStatistics(() => ({ running: 0, waiting: 0 })),
    vocabSize: 100,
    outputWidth: 2,
    head: {
      kind: 'embedding',
      pooling: 'mean',
      normalize: false,
      matryoshka: null,
      layers: [],
      prompts: {},
      defaultPrompt: null,
    },
    codec: {
      single: async (texts) =>
        texts.map((text) => ({ tokenIds: new Int32Array(text.length), tokenTypes: null })),
      pairs: async () => [],
      unweighted: new Set(),
    },
    engine: { encode: async (rows) => rows.map(({ tokenIds }) => Float32Array.of(tokenIds.length, 0)) },
    ...fields,
  };
}

const server = () => {
  const toy = toyServer(() => say('x'), {
    model: { facts, cacheBytes: 1e9, codec: templatedCodec('{{ tools }}{{ messages }}</think>') },
  });
  toy.models.add(encoder());
  // biome-ignore lint/suspicious/noExplicitAny: answers are what the tests judge
  const get = async (path: string): Promise<any> => (await toy.get(path)).json();
  const post = (path: string, body: object) => toy.post(path, body);
  return { get, post };
};

it('/api/show shows the model that /api/chat would ask, whatever the case of its name', async () => {
  const stored = { name: 'toy', modifiedMs: 0, path: '/no/such/folder' } as StoredModel;
  const store = { find: async (name: string) => (name.toLowerCase() === 'toy' ? stored : null) };
  const toy = toyServer(() => say('x'), {
    model: { facts, codec: templatedCodec('served from elsewhere') },
    life: { store } as unknown as ModelLife,
  });
  for (const model of ['toy', 'TOY', 'Toy:latest']) {
    const shown = (await (await toy.post('/api/show', { model })).json()) as { template: string };
    expect(shown.template).toBe('served from elsewhere');
  }
});

describe("Ollama's lists of models", () => {
  it('have names with tags, sizes, digests and details', async () => {
    const { models } = await server().get('/api/tags');
    expect(models.map(({ name }: { name: string }) => name)).toEqual(['toy:latest', 'vectors:latest']);
    expect(models[0]).toEqual({
      name: 'toy:latest',
      model: 'toy:latest',
      modified_at: '2023-11-14T22:13:20.000Z',
      size: expect.any(Number),
      digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      details: {
        parent_model: '',
        format: 'gguf',
        family: 'llama',
        families: ['llama'],
        parameter_size: expect.stringMatching(/^[\d.]+[KM]$/),
        quantization_level: expect.stringMatching(/^[A-Z]+\d/),
      },
    });
    expect(models[0].size).toBeGreaterThan(1000);
  });

  it('tell which are loaded, what memory they take, and until when', async () => {
    const { models } = await server().get('/api/ps');
    expect(models[0]).toMatchObject({ name: 'toy:latest', size_vram: 0, context_length: 256 });
    expect(models[0].size).toBe(facts().weightBytes + 1e9);
    expect(new Date(models[0].expires_at).getFullYear()).toBeGreaterThan(2100);
  });

  it('show a model: template, dimensions, what it can do', async () => {
    const { post } = server();
    for (const body of [{ model: 'toy' }, { name: 'toy:latest', verbose: true }]) {
      const response = await post('/api/show', body);
      expect(await response.json()).toMatchObject({
        template: '{{ tools }}{{ messages }}</think>',
        details: { family: 'llama' },
        model_info: { 'general.architecture': 'llama', 'llama.context_length': 256 },
        capabilities: ['completion', 'tools', 'thinking'],
      });
    }
    const vectors = await (await post('/api/show', { model: 'vectors' })).json();
    expect(vectors).toMatchObject({ capabilities: ['embedding'] });
    expect((await post('/api/show', { model: 'none' })).status).toBe(404);
    expect((await post('/api/show', {})).status).toBe(400);
    // Ollama's own client sends both names, one of them empty.
    expect((await post('/api/show', { model: '', name: 'vectors' })).status).toBe(200);
    expect((await post('/api/show', { model: '', name: '' })).status).toBe(400);
  });

  it('tell the version of the API', async () => {
    expect(await server().get('/api/version')).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      skein: '0.0.0-test',
    });
  });
});

describe('embeddings by /api/embed and /api/embeddings', () => {
  it('are of length 1, or as the model gives them', async () => {
    const { post } = server();
    const response = await post('/api/embed', { model: 'vectors', input: ['abc', 'd'], keep_alive: '5m' });
    expect(await response.json()).toMatchObject({
      model: 'vectors',
      embeddings: [
        [1, 0],
        [1, 0],
      ],
      prompt_eval_count: 4,
      total_duration: expect.any(Number),
      load_duration: expect.any(Number),
    });
    const older = await post('/api/embeddings', { model: 'vectors:latest', prompt: 'abc' });
    expect(await older.json()).toEqual({ embedding: [3, 0] });
  });

  it('of nothing are none', async () => {
    const { post } = server();
    for (const input of ['', []]) {
      const answer = await (await post('/api/embed', { model: 'vectors', input })).json();
      expect(answer).toMatchObject({ embeddings: [], prompt_eval_count: 0 });
    }
    expect(await (await post('/api/embeddings', { model: 'vectors' })).json()).toEqual({ embedding: [] });
  });

  it('are refused by a model that makes none, and texts by one that makes these', async () => {
    const { post } = server();
    const refused = await post('/api/embed', { model: 'toy', input: 'a' });
    expect([refused.status, await refused.json()]).toEqual([
      400,
      { error: '"toy" does not support embeddings' },
    ]);
    const chat = await post('/api/chat', { model: 'vectors', messages: [{ role: 'user', content: 'a' }] });
    expect([chat.status, await chat.json()]).toEqual([400, { error: '"vectors" does not support chat' }]);
  });
});
