import { describe, expect, it } from 'vitest';
import { says, input as tensor } from '../../../../../base/named-text.js';
import { RequestError } from '../../../../../callbacks/token-request.js';
import { say, toyServer } from '../../../support/toy-server.js';
import { type Any, create, PATH, promptText, readEvents, refusal } from './support.js';

const input = 'Hi';

describe('POST /v1/responses', () => {
  it("answers with an object of OpenAI's shape, its defaults written out", async () => {
    const toy = toyServer(() => say('Paris'));
    const response = await create(toy, { input });
    expect(response).toEqual({
      id: expect.stringMatching(/^resp_[0-9a-f]{48}$/),
      object: 'response',
      created_at: expect.any(Number),
      completed_at: expect.any(Number),
      status: 'completed',
      background: false,
      conversation: null,
      error: null,
      incomplete_details: null,
      instructions: null,
      max_output_tokens: null,
      max_tool_calls: null,
      metadata: {},
      model: 'toy',
      output: [
        {
          type: 'message',
          id: expect.stringMatching(/^msg_/),
          status: 'completed',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'Paris', annotations: [] }],
        },
      ],
      parallel_tool_calls: true,
      previous_response_id: null,
      prompt_cache_key: null,
      reasoning: { effort: null, summary: null },
      safety_identifier: null,
      service_tier: 'default',
      store: true,
      temperature: 1,
      text: { format: { type: 'text' }, verbosity: 'medium' },
      tool_choice: 'auto',
      tools: [],
      top_logprobs: 0,
      top_p: 1,
      truncation: 'disabled',
      usage: {
        input_tokens: toy.engine.requests[0]!.promptTokens.length,
        input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
        output_tokens: 5,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: toy.engine.requests[0]!.promptTokens.length + 5,
      },
      user: null,
    });
  });

  it('gives back what the request said', async () => {
    const fields = {
      instructions: 'Be brief.',
      max_output_tokens: 20,
      metadata: { order: '7' },
      prompt_cache_key: 'k',
      safety_identifier: 's',
      temperature: 0.5,
      top_p: 0.9,
      truncation: 'auto',
      user: 'me',
      parallel_tool_calls: false,
      store: false,
    };
    expect(
      await create(
        toyServer(() => say('x')),
        { input, ...fields },
      ),
    ).toMatchObject(fields);
  });

  it('passes on how tokens are drawn', async () => {
    const toy = toyServer(() => say('x'));
    await create(toy, {
      input,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 7,
      min_p: 0.1,
      seed: 3,
      max_output_tokens: 9,
    });
    expect(toy.engine.requests[0]).toMatchObject({
      temperature: 0.5,
      topP: 0.9,
      topK: 7,
      minP: 0.1,
      seed: 3n,
      maxNewTokens: 9,
    });
  });

  it('puts instructions and items into the prompt', async () => {
    const toy = toyServer(() => say('x'));
    await create(toy, {
      instructions: 'Be brief.',
      input: [
        { role: 'developer', content: 'Be kind.' },
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'One' },
            { type: 'input_text', text: 'Two' },
          ],
        },
        {
          type: 'message',
          role: 'assistant',
          id: 'msg_1',
          status: 'completed',
          content: [{ type: 'output_text', text: 'Yes', annotations: [], logprobs: [] }],
        },
        { type: 'message', role: 'user', content: 'Three' },
      ],
    });
    expect(promptText(toy)).toBe(
      '<system>Be brief.</><system>Be kind.</><user>One\nTwo</><assistant>Yes</><user>Three</><assistant>',
    );
  });

  it('is incomplete where a limit cut it', async () => {
    const cut = (finish: 'length' | 'timeout') => toyServer(() => [...say('ab').slice(0, -1), { finish }]);
    const response = await create(cut('length'), { input });
    expect(response).toMatchObject({
      status: 'incomplete',
      completed_at: null,
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ status: 'incomplete', content: [{ text: 'ab' }] }],
    });
    const timeout = await create(cut('timeout'), { input, time_limit_ms: 5 });
    expect(timeout.incomplete_details).toEqual({ reason: 'max_output_tokens', stop_reason: 'time_limit' });
  });

  it('an answer without text is an empty message', async () => {
    const response = await create(
      toyServer(() => [{ finish: 'stop' }]),
      { input },
    );
    expect(response.output).toMatchObject([
      { type: 'message', status: 'completed', content: [{ text: '' }] },
    ]);
  });

  it('has log-probs where they are included', async () => {
    const top = [
      [
        [104, -0.5],
        [105, -1],
      ] as const,
    ];
    const toy = toyServer(() => [{ tokens: [104], logProbs: [-0.5], top }, { finish: 'stop' }]);
    const ask = { input, include: ['message.output_text.logprobs'], top_logprobs: 2 };
    const token = { token: 'h', logprob: -0.5, bytes: [104] };
    const logprobs = [{ ...token, top_logprobs: [token, { token: 'i', logprob: -1, bytes: [105] }] }];
    expect((await create(toy, ask)).output[0].content[0].logprobs).toEqual(logprobs);
    const events = await readEvents(await toy.post(PATH, { ...ask, stream: true }));
    const byType = (type: string) => events.filter((event) => event.type === type);
    expect(byType('response.output_text.delta').flatMap((event) => event.logprobs)).toEqual(logprobs);
    expect(byType('response.output_text.done')[0].logprobs).toEqual(logprobs);
    expect(events.at(-1).response.output[0].content[0].logprobs).toEqual(logprobs);
  });

  it('follows a schema', async () => {
    const schema = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] };
    const toy = toyServer(() => say('{"a":1}'));
    const format = { type: 'json_schema', name: 'thing', schema, strict: true };
    const response = await create(toy, { input, text: { format } });
    expect(toy.engine.requests[0]!.guide).toMatchObject({ type: 'json_schema' });
    expect(response.text.format).toEqual({ ...format, description: null });
    await create(toy, { input, text: { format: { type: 'json_object' } } });
    expect(toy.engine.requests[1]!.guide).toBeDefined();
    await create(toy, { input, text: { format: { type: 'text' } } });
    expect(toy.engine.requests[2]!.guide).toBeUndefined();
  });
});

describe('a stream of a response', () => {
  const place = { output_index: 0, content_index: 0, item_id: expect.stringMatching(/^msg_/) };

  it("has OpenAI's events in their order", async () => {
    const toy = toyServer(() => say('Hi!'));
    const answer = await toy.post(PATH, { input, stream: true });
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    const events = await readEvents(answer);
    const message = { type: 'message', role: 'assistant' };
    const part = { type: 'output_text', annotations: [] };
    expect(events).toMatchObject([
      { type: 'response.created', response: { status: 'in_progress', output: [], usage: null } },
      { type: 'response.in_progress', response: { status: 'in_progress', output: [] } },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { ...message, status: 'in_progress', content: [] },
      },
      { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
      { type: 'response.output_text.delta', ...place, delta: 'H', logprobs: [] },
      { type: 'response.output_text.delta', ...place, delta: 'i' },
      { type: 'response.output_text.delta', ...place, delta: '!' },
      { type: 'response.output_text.done', ...place, text: 'Hi!', logprobs: [] },
      { type: 'response.content_part.done', ...place, part: { ...part, text: 'Hi!' } },
      {
        type: 'response.output_item.done',
        item: { ...message, status: 'completed', content: [{ ...part, text: 'Hi!' }] },
      },
      { type: 'response.completed', response: { status: 'completed', usage: { output_tokens: 3 } } },
    ]);
    expect(new Set(events.map(({ item_id, item }) => item_id ?? item?.id).filter(Boolean)).size).toBe(1);
    const stored = await (await toy.get(`${PATH}/${events[0].response.id}`)).json();
    expect(stored).toEqual(events.at(-1).response);
  });

  it('says the same as the answer that is whole', async () => {
    const toy = toyServer(() => say('Hé, ça va?'));
    const whole = await create(toy, { input, seed: 1 });
    const streamed = (await readEvents(await toy.post(PATH, { input, seed: 1, stream: true }))).at(
      -1,
    ).response;
    const bare = ({ id, created_at, completed_at, output, ...rest }: Any) => ({
      ...rest,
      output: output.map(({ id: _, ...item }: Any) => item),
    });
    expect(bare(streamed)).toEqual(bare(whole));
  });

  it('ends with response.incomplete where a limit cut it', async () => {
    const toy = toyServer(() => [...say('ab').slice(0, -1), { finish: 'length' }]);
    const events = await readEvents(await toy.post(PATH, { input, stream: true }));
    expect(events.at(-2)).toMatchObject({
      type: 'response.output_item.done',
      item: { status: 'incomplete' },
    });
    expect(events.at(-1)).toMatchObject({
      type: 'response.incomplete',
      response: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
    });
  });

  it('trap 6: an error after it began is an event, and then the response has failed', async () => {
    const toy = toyServer(() => [
      { tokens: [104] },
      { waitMs: 5 },
      { error: new RequestError('logits are NaN') },
    ]);
    const events = await readEvents(await toy.post(PATH, { input, stream: true }));
    const fields = { code: 'engine_error', message: 'logits are NaN', param: null };
    const error = { code: 'server_error', message: 'logits are NaN' };
    const item = { status: 'incomplete', content: [{ text: 'h' }] };
    expect(events.slice(-3)).toMatchObject([
      { type: 'response.output_item.done', item },
      { type: 'error', ...fields, error: { type: 'server_error', ...fields } },
      { type: 'response.failed', response: { status: 'failed', error, output: [item] } },
    ]);
    expect((await toy.get(`${PATH}/${events[0].response.id}`)).status).toBe(404);
  });

  it('is refused before it begins by a status of HTTP', async () => {
    const toy = toyServer(() => [
      {
        error: new RequestError(says`${tensor('runtime_top_k')} is 5; it must be less.`, {
          kind: 'invalid',
          field: 'runtime_top_k',
        }),
      },
    ]);
    for (const stream of [true, false]) {
      expect(await refusal(toy, { input, stream })).toMatchObject({ status: 400, param: 'top_k' });
    }
  });

  it('trap 7: a client that leaves ends its response, which is not kept', async () => {
    const toy = toyServer(() => [{ tokens: [104] }, { waitMs: 10_000 }, { finish: 'stop' }]);
    const leave = new AbortController();
    const answer = await toy.post(PATH, { input, stream: true }, { signal: leave.signal });
    const reader = answer.body!.getReader();
    const { value } = await reader.read();
    const id = /"id":"(resp_\w+)"/.exec(Buffer.from(value!).toString())![1];
    expect((await toy.get(`${PATH}/${id}`)).status).toBe(200);
    await reader.cancel();
    await expect.poll(() => toy.engine.active).toBe(0);
    await expect.poll(async () => (await toy.get(`${PATH}/${id}`)).status).toBe(404);
    const whole = toy.post(PATH, { input }, { signal: leave.signal });
    await expect.poll(() => toy.engine.active).toBe(1);
    leave.abort();
    expect((await whole).status).toBe(499);
    await expect.poll(() => toy.engine.active).toBe(0);
  });
});

describe('a response that cannot be', () => {
  it.each<[string, object, string, string]>([
    ['no input', { input: undefined }, 'input', 'is required'],
    ['a number', { input: 5 }, 'input', 'expected a string or a list'],
    ['no items', { input: [] }, 'input', 'not empty'],
    ['an unknown role', { input: [{ role: 'boss', content: 'x' }] }, 'input[0].role', "one of 'user'"],
    [
      'an unknown item',
      { input: [{ type: 'web_search', id: 'x' }] },
      'input[0].type',
      'expected an item of type',
    ],
    [
      'a file',
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'x' }] }] },
      'input[0].content[0].type',
      'input_text',
    ],
    [
      'a call without a name',
      { input: [{ type: 'function_call', call_id: 'c', arguments: '{}' }] },
      'input[0].name',
      'required',
    ],
    [
      'a reference to nothing',
      { input: [{ type: 'item_reference', id: 'msg_0' }] },
      'input[0].id',
      'no stored response',
    ],
    ['a temperature too high', { temperature: 3 }, 'temperature', 'at most 2'],
    ['too many tokens', { max_output_tokens: 1000 }, 'input', '256'],
    ['top_logprobs alone', { top_logprobs: 2 }, 'top_logprobs', "'include'"],
    ['something else to include', { include: ['everything'] }, 'include[0]', 'logprobs'],
    ['a field of chat', { messages: [{}] }, 'messages', "use 'input'"],
    ['max_tokens', { max_tokens: 5 }, 'max_tokens', "use 'max_output_tokens'"],
    [
      'too much metadata',
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, ''])) },
      'metadata',
      '16',
    ],
    [
      'an unknown response before it',
      { previous_response_id: 'resp_0' },
      'previous_response_id',
      'no response',
    ],
    [
      'a schema that is none',
      { text: { format: { type: 'json_schema', name: 'x', schema: 5 } } },
      'text.format.schema',
      'JSON schema',
    ],
    [
      'a schema beyond grammars',
      { text: { format: { type: 'json_schema', name: 'x', strict: true, schema: { $dynamicRef: '#' } } } },
      'text.format',
      'keyword $dynamicRef',
    ],
  ])('%s is a 4xx that names the field', async (_, fields, param, message) => {
    const error = await refusal(
      toyServer(() => say('x')),
      { input, ...fields },
    );
    expect(error).toMatchObject({ type: 'invalid_request_error', param });
    expect([400, 404]).toContain(error.status);
    expect(error.message).toContain(message);
  });

  it.each<[string, unknown]>([
    ['prompt', { id: 'pmpt_1' }],
    ['moderation', {}],
  ])('%s cannot work and is refused by name', async (field, value) => {
    const error = await refusal(
      toyServer(() => say('x')),
      { input, [field]: value },
    );
    expect(error).toMatchObject({ status: 400, param: field, code: 'unsupported_parameter' });
  });

  it('what asks for nothing, and null, is accepted', async () => {
    const harmless = {
      background: false,
      conversation: null,
      prompt: null,
      tools: [],
      tool_choice: 'auto',
      include: [],
      metadata: null,
      reasoning: null,
      text: { verbosity: 'medium' },
      service_tier: 'auto',
      stream_options: { include_obfuscation: false },
      max_output_tokens: null,
      truncation: null,
      previous_response_id: null,
    };
    await create(
      toyServer(() => say('x')),
      { input, ...harmless },
    );
  });
});
