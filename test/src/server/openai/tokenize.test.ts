import { describe, expect, it } from 'vitest';
import { BOS_TOKEN, bytesOf, TOY_VOCAB } from '../../support/toy-codec.js';
import { say, toyServer } from '../../support/toy-server.js';

const toy = toyServer(() => say('x'));
const tokenize = async (body: object) => {
  const response = await toy.post('/tokenize', body);
  return [response.status, await response.json()] as const;
};

describe('/tokenize', () => {
  it('gives the tokens of a text as it is, with what the model wants around it unless that is not wanted', async () => {
    expect(await tokenize({ model: 'toy', prompt: 'hé' })).toEqual([
      200,
      { count: 4, max_model_len: 256, tokens: [BOS_TOKEN, ...bytesOf('hé')], token_strs: null },
    ]);
    expect(await tokenize({ prompt: 'hi', add_special_tokens: false, return_token_strs: true })).toEqual([
      200,
      { count: 2, max_model_len: 256, tokens: bytesOf('hi'), token_strs: ['h', 'i'] },
    ]);
    expect((await tokenize({ prompt: '', add_special_tokens: false }))[1]).toMatchObject({
      count: 0,
      tokens: [],
    });
  });

  it('gives the prompt that a conversation becomes', async () => {
    const messages = [{ role: 'user', content: 'Hi' }];
    const text = (tokens: number[]) => String.fromCharCode(...tokens.filter((token) => token < 256));
    const promptOf = async (fields: object) => {
      const [status, { tokens }] = (await tokenize({ messages, ...fields })) as [
        number,
        { tokens: number[] },
      ];
      expect(status).toBe(200);
      return [text(tokens), tokens.filter((token) => token === BOS_TOKEN).length];
    };
    expect(await promptOf({})).toEqual(['<user>Hi</><assistant>', 1]);
    expect(await promptOf({ add_generation_prompt: false })).toEqual(['<user>Hi</>', 1]);
    expect(await promptOf({ add_special_tokens: true })).toEqual(['<user>Hi</><assistant>', 2]);
    const open = [...messages, { role: 'assistant', content: 'We' }];
    expect(await promptOf({ messages: open, continue_final_message: true })).toEqual([
      '<user>Hi</><assistant>We',
      1,
    ]);
  });

  it('counts what a chat answer says of its prompt', async () => {
    const messages = [{ role: 'user', content: 'Hi' }];
    const [, { count }] = (await tokenize({ messages })) as unknown as [number, { count: number }];
    const answer = (await (await toy.post('/v1/chat/completions', { messages })).json()) as {
      usage: { prompt_tokens: number };
    };
    expect(answer.usage.prompt_tokens).toBe(count);
  });

  it.each([
    [{}, 'prompt', "One of 'prompt' and 'messages' is required."],
    [{ prompt: 'a', messages: [{ role: 'user', content: 'b' }] }, 'prompt', 'exclude each other'],
    [{ prompt: 'a', tools: [] }, 'tools', "'tools' needs 'messages'."],
    [{ prompt: 5 }, 'prompt', 'expected a string'],
    [
      { messages: [{ role: 'user', content: 'b' }], continue_final_message: true },
      'continue_final_message',
      'assistant',
    ],
  ])('refuses %j by name', async (body, param, message) => {
    const [status, { error }] = (await tokenize(body)) as [number, { error: { message: string } }];
    expect(status).toBe(400);
    expect(error).toMatchObject({ param });
    expect(error.message).toContain(message);
  });

  it('does not know models that there are not', async () => {
    expect((await tokenize({ model: 'nobody', prompt: 'a' }))[0]).toBe(404);
  });
});

describe('what a request would begin with', () => {
  const render = async (path: string, body: object) => {
    const response = await toy.post(`${path}/render`, body);
    return [response.status, await response.json()] as const;
  };

  it('is told as vLLM does, and is what /tokenize tells', async () => {
    expect(await render('/v1/completions', { model: 'toy', prompt: 'hé' })).toEqual([
      200,
      [{ model: 'toy', token_ids: [BOS_TOKEN, ...bytesOf('hé')] }],
    ]);
    const messages = [{ role: 'user', content: 'Hi' }];
    for (const fields of [{}, { add_generation_prompt: false }]) {
      const [, { tokens }] = (await tokenize({ messages, ...fields })) as unknown as [
        number,
        { tokens: number[] },
      ];
      // Routers send fields that no template here reads.
      const sent = { messages, documents: [], ...fields };
      expect(await render('/v1/chat/completions', sent)).toEqual([200, { model: 'toy', token_ids: tokens }]);
    }
  });

  it.each([
    ['/v1/completions', {}, 'prompt'],
    ['/v1/completions', { prompt: 'a'.repeat(2 ** 18 + 1) }, 'prompt'],
    ['/v1/chat/completions', {}, 'messages'],
    ['/v1/chat/completions', { prompt: 'a' }, 'prompt'],
  ])('%s/render refuses by name what it cannot read', async (path, body, param) => {
    expect(await render(path, body)).toMatchObject([400, { error: { param } }]);
  });
});

describe('/detokenize', () => {
  it('gives the text of tokens, special ones included', async () => {
    const response = await toy.post('/detokenize', { tokens: [BOS_TOKEN, ...bytesOf('hé')] });
    expect(await response.json()).toEqual({ prompt: `<${BOS_TOKEN}>hé` });
    expect(await (await toy.post('/detokenize', { tokens: [] })).json()).toEqual({ prompt: '' });
  });

  it('refuses what is no token by its place', async () => {
    for (const [tokens, param] of [
      [[1, TOY_VOCAB], 'tokens[1]'],
      [[-1], 'tokens[0]'],
      [['a'], 'tokens[0]'],
      [undefined, 'tokens'],
    ] as const) {
      const response = await toy.post('/detokenize', { tokens });
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ error: { param } });
    }
  });
});
