import { describe, expect, it } from 'vitest';
import { ApiKeys } from '../../../../src/server/web/access/api-keys.js';
import { type Any, PATH, question, refusal, server } from './support.js';

const VERSION = { 'anthropic-version': '2023-06-01' };

describe("errors in Anthropic's form", () => {
  it('name the field, and the request', async () => {
    const response = await server('x').post(PATH, { messages: question.messages });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: "The field 'max_tokens' is required.",
        details: { error_code: 'missing_required_parameter', param: 'max_tokens' },
      },
      request_id: response.headers.get('request-id'),
    });
  });

  it.each<[string, object, number, string, RegExp]>([
    ['an unknown model', { model: 'claude' }, 404, 'not_found_error', /^The model 'claude' does not exist/],
    ['a value out of range', { temperature: 9 }, 400, 'invalid_request_error', /'temperature'/],
    [
      'an empty stop sequence',
      { stop_sequences: [''] },
      400,
      'invalid_request_error',
      /'stop_sequences\[0\]'/,
    ],
    [
      'a prompt that is too long',
      { messages: [{ role: 'user', content: 'x'.repeat(4100) }] },
      400,
      'invalid_request_error',
      /^prompt is too long: /,
    ],
    [
      'a field that cannot work',
      { mcp_servers: [{ name: 'a' }] },
      400,
      'invalid_request_error',
      /'mcp_servers'/,
    ],
    [
      'a field of another API',
      { stop: ['a'] },
      400,
      'invalid_request_error',
      /'stop'.* use 'stop_sequences'/,
    ],
    [
      'a thread of an earlier message',
      { thread: { type: 'continue', previous_message_id: 'msg_1' } },
      404,
      'not_found_error',
      /msg_1.* send the whole conversation/,
    ],
    ['no tokens', { max_tokens: 0 }, 400, 'invalid_request_error', /'max_tokens'/],
  ])('%s', async (_, fields, status, type, message) => {
    expect(await refusal(server('x'), fields)).toMatchObject({
      status,
      type,
      message: expect.stringMatching(message),
    });
  });

  it('tell of a lost thread in the word by which a client sends the whole conversation again', async () => {
    const thread = { type: 'continue', previous_message_id: 'msg_1' };
    const response = await server('x').post(PATH, { ...question, thread });
    expect(await response.json()).toMatchObject({ error: { details: { error_code: 'thread_not_found' } } });
    expect((await server('x').post(PATH, { ...question, thread: { type: 'create' } })).status).toBe(200);
  });

  it('tell who may ask: a key comes in either header', async () => {
    const apiKeys = new ApiKeys([{ name: 'ali', key: 'sesame', weight: 1 }]);
    const toy = server('x', '{{ messages }}', { apiKeys });
    const status = async (headers: Record<string, string>) =>
      (await toy.post(PATH, question, { headers })).status;
    expect(await status({ 'x-api-key': 'sesame' })).toBe(200);
    expect(await status({ authorization: 'Bearer sesame' })).toBe(200);
    expect(await status({ 'x-api-key': 'wrong' })).toBe(401);
    expect(await refusal(toy, {})).toMatchObject({ status: 401, type: 'authentication_error' });
    // Of another route, to a client that says whose API it speaks.
    const models = await toy.get('/v1/models', { headers: VERSION });
    expect(await models.json()).toMatchObject({ type: 'error', error: { type: 'authentication_error' } });
  });

  it('tell that the server is full', async () => {
    const toy = server('x', '{{ messages }}', { maxActive: 0 });
    expect(await refusal(toy, {})).toMatchObject({ status: 429, type: 'rate_limit_error' });
    toy.state.drain();
    expect(await refusal(toy, {})).toMatchObject({ status: 503, type: 'overloaded_error' });
  });

  it('are those of other methods and paths too', async () => {
    const toy = server('x');
    const other = await toy.get(PATH);
    expect(other.status).toBe(405);
    expect(await other.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
    const nowhere = await toy.post(`${PATH}/batches`, {});
    expect(await nowhere.json()).toMatchObject({ type: 'error', error: { type: 'not_found_error' } });
  });
});

describe('tokens are counted', () => {
  it('as the prompt has them, with its tools, even beyond the context', async () => {
    const toy = server('x', '{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}');
    const count = async (fields: object) => {
      const response = await toy.post(`${PATH}/count_tokens`, { messages: question.messages, ...fields });
      return ((await response.json()) as Any).input_tokens as number;
    };
    const plain = await count({});
    await toy.post(PATH, question);
    expect(plain).toBe(toy.engine.requests[0]!.promptTokens.length);
    const tools = [{ name: 'f', input_schema: { type: 'object' } }];
    expect(await count({ tools, thinking: { type: 'enabled' }, system: 'Hm.' })).toBeGreaterThan(plain + 20);
    expect(await count({ messages: [{ role: 'user', content: 'x'.repeat(9000) }] })).toBeGreaterThan(9000);
  });

  it('of a request whose fields are right', async () => {
    const path = `${PATH}/count_tokens`;
    expect(await refusal(server('x'), { messages: 'none' }, path)).toMatchObject({
      status: 400,
      details: { param: 'messages' },
    });
  });
});

describe("models in Anthropic's form", () => {
  it('are listed to clients that speak it', async () => {
    const toy = server('x');
    const model = {
      type: 'model',
      id: 'toy',
      display_name: 'toy',
      created_at: '2023-11-14T22:13:20.000Z',
      max_input_tokens: 5000,
    };
    const list = (await (await toy.get('/v1/models', { headers: VERSION })).json()) as Any;
    expect(list).toMatchObject({ data: [model], first_id: 'toy', last_id: 'toy', has_more: false });
    expect(await (await toy.get('/v1/models/toy', { headers: VERSION })).json()).toMatchObject(model);
    expect(await (await toy.get('/v1/models/toy')).json()).toMatchObject({ object: 'model' });
  });
});
