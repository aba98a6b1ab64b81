import { describe, expect, it } from 'vitest';
import type { ModelLife } from '../../../src/server/answering/model-life.js';
import type { StoredModel } from '../../../src/serving/on-demand/model-store.js';
import { say, toyModel, toyServer } from '../support/toy-server.js';

const stored = { name: 'stored', modifiedMs: 1_700_000_000_000 } as StoredModel;
const messages = [{ role: 'user', content: 'a' }];

/** A server with a folder of one model, which is loaded by its name. */
function server() {
  const lent: string[] = [];
  let released = 0;
  const store = {
    list: async () => [stored],
    find: async (name: string) => (name === 'stored' ? stored : null),
  };
  const models = {
    borrow: async (name: string) => {
      if (name !== 'stored') return null;
      lent.push(name);
      const model = toyModel(toy.engine, { id: name });
      if (toy.models.find(name) === undefined) toy.models.add(model);
      return { model, release: () => released++ };
    },
  };
  const life = { store, models, pulls: null } as unknown as ModelLife;
  const toy = toyServer(() => say('x'), { life });
  return { toy, lent, released: () => released };
}

describe('a model of the folder that a request names', () => {
  it.each<[string, object | null, number?]>([
    ['/v1/chat/completions', { messages }],
    ['/v1/completions', { prompt: 'a' }],
    ['/v1/messages', { messages, max_tokens: 2 }],
    ['/v1/messages/count_tokens', { messages }],
    ['/v1/responses', { input: 'a' }],
    ['/v1/responses/input_tokens', { input: 'a' }],
    ['/tokenize', { prompt: 'a' }],
    ['/apply-template', { messages }],
    ['/v1/completions/render', { prompt: 'a' }],
    ['/v1/chat/completions/render', { messages }],
    ['/v1/embeddings', { input: 'a' }, 400],
    ['/pooling', { input: 'a' }, 400],
    ['/props', null],
    ['/tokenizer_info', null],
  ])('is loaded for %s, and given back', async (path, body, status = 200) => {
    for (const name of ['stored', 'stored:latest']) {
      const { toy, lent, released } = server();
      const asked =
        body === null ? toy.get(`${path}?model=${name}`) : toy.post(path, { model: name, ...body });
      // The toy generates text, and is no encoder.
      expect((await asked).status).toBe(status);
      expect([lent, released()]).toEqual([['stored'], 1]);
      const none = body === null ? toy.get(`${path}?model=none`) : toy.post(path, { model: 'none', ...body });
      expect((await none).status).toBe(404);
    }
  });

  it('is listed in the form of each API', async () => {
    const { toy } = server();
    const headers = { 'anthropic-version': '2023-06-01' };
    const idsOf = async (init?: RequestInit) => {
      const { data } = (await (await toy.get('/v1/models', init)).json()) as { data: { id: string }[] };
      return data.map(({ id }) => id);
    };
    expect(await idsOf()).toEqual(['toy', 'stored']);
    expect(await idsOf({ headers })).toEqual(['toy', 'stored']);
    expect(await (await toy.get('/v1/models/stored', { headers })).json()).toMatchObject({
      type: 'model',
      id: 'stored',
      created_at: '2023-11-14T22:13:20.000Z',
      max_input_tokens: null,
    });
  });
});
