import { describe, expect, it } from 'vitest';
import { RequestError } from '../../../../callbacks/token-request.js';
import { say, toyServer } from '../../support/toy-server.js';
import { create, HERMES, PATH, question, readEvents, server, stream, THINKS, user } from './support.js';

const call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Ur"}}\n</tool_call>';
const tools = [{ name: 'weather', input_schema: { type: 'object' } }];

describe('a message', () => {
  it('has the text, the reason of its end, and its usage', async () => {
    const toy = server('Paris.');
    const response = await toy.post(PATH, question);
    expect(response.headers.get('request-id')).toBe(response.headers.get('x-request-id'));
    const prompt = toy.engine.requests[0]!.promptTokens.length;
    expect(await response.json()).toEqual({
      id: expect.stringMatching(/^msg_/),
      type: 'message',
      role: 'assistant',
      model: 'toy',
      content: [{ type: 'text', text: 'Paris.' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      stop_details: null,
      container: null,
      usage: {
        input_tokens: prompt,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        output_tokens: 6,
        output_tokens_details: { thinking_tokens: 0 },
        server_tool_use: null,
        cache_creation: null,
        service_tier: 'standard',
        inference_geo: null,
      },
    });
  });

  it('counts what was found in the cache beside the input', async () => {
    const toy = toyServer(() => [{ tokens: [65], cachedTokens: 4 }, { finish: 'stop' }]);
    const { usage } = await create(toy, {});
    const prompt = toy.engine.requests[0]!.promptTokens.length;
    expect(usage).toMatchObject({ input_tokens: prompt - 4, cache_read_input_tokens: 4 });
    const [start] = await stream(toy, {});
    expect(start.message.usage).toMatchObject({ input_tokens: prompt - 4, cache_read_input_tokens: 4 });
  });

  it('tells the stop sequence that ended it', async () => {
    const message = await create(server('one two three'), { stop_sequences: ['nothing', ' two'] });
    expect(message).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: ' two' });
    expect(message.content).toMatchObject([{ text: 'one' }]);
  });

  it('tells apart the limit of the request and that of the context', async () => {
    const cut = toyServer(() => [{ tokens: [65] }, { finish: 'length' }]);
    expect((await create(cut, { max_tokens: 2 })).stop_reason).toBe('max_tokens');
    expect((await create(cut, { max_tokens: 32_000 })).stop_reason).toBe('model_context_window_exceeded');
    const { promptTokens, maxNewTokens } = cut.engine.requests.at(-1)!;
    expect(promptTokens.length + maxNewTokens).toBe(256);
  });

  it('may be empty', async () => {
    expect((await create(server(''), {})).content).toEqual([]);
    const types = (await stream(server(''), {})).map(({ type }) => type);
    expect(types).toEqual(['message_start', 'ping', 'message_delta', 'message_stop']);
  });

  it('goes on with the beginning that the request has of it', async () => {
    const toy = server(' is here');
    const messages = [user('Where?'), { role: 'assistant', content: 'It' }];
    await create(toy, { messages });
    expect(toy.rendered[0]).toMatchObject({
      messages: [{ role: 'user' }, { role: 'assistant', content: 'It' }],
      options: { addGenerationPrompt: false, continueFinalMessage: true },
    });
    await create(toy, { messages: [user('Where?'), { role: 'assistant', content: '' }] });
    expect(toy.rendered[1]).toMatchObject({
      messages: [{ role: 'user' }],
      options: { addGenerationPrompt: true, continueFinalMessage: false },
    });
  });

  it('follows a schema', async () => {
    const schema = { type: 'object', properties: { a: { type: 'integer' } } };
    const format = { type: 'json_schema', schema };
    for (const fields of [{ output_config: { format } }, { output_format: format }]) {
      const toy = server('{}');
      await create(toy, fields);
      expect(toy.engine.requests[0]!.guide).toEqual({ type: 'json_schema', guide: JSON.stringify(schema) });
    }
  });

  it('is sampled as the request says', async () => {
    const toy = server('x');
    await create(toy, { temperature: 0.5, top_p: 0.9, top_k: 7, seed: 3 });
    expect(toy.engine.requests[0]!).toMatchObject({ temperature: 0.5, topP: 0.9, topK: 7, seed: 3n });
  });

  it.each([
    [{ min_tokens: 3, stop_token_ids: [9] }, { minLength: 3 }],
    [{ guided_regex: 'ab' }, { guide: { type: 'regex', guide: 'ab' } }],
    [{ grammar: 'root ::= "a"' }, { guide: { type: 'ebnf_grammar', guide: 'root ::= "a"' } }],
    [{ json_schema: { type: 'object' } }, { guide: { type: 'json_schema', guide: '{"type":"object"}' } }],
    [{ allowed_token_ids: [65] }, { allowedTokens: [65] }],
    [{ ignore_eos: true }, { endTokenIds: [] }],
    [{ cache_prompt: false }, { cacheSalt: expect.any(BigInt) }],
  ])('takes %j as the other routes do', async (fields, asked) => {
    const toy = server('a');
    await create(toy, fields);
    expect(toy.engine.requests[0]!).toMatchObject(asked);
  });

  it.each([
    [{ chat_template: 'x' }],
    [{ documents: [{ text: 'x' }] }],
    [{ truncate_prompt_tokens: 5 }],
    [{ prompt_logprobs: 1 }],
    [{ use_beam_search: true }],
    [{ thinking_token_budget: 5 }],
  ])('refuses %j, which it would have to leave out', async (fields) => {
    const response = await server('a').post(PATH, { ...question, ...fields });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: {
        type: 'invalid_request_error',
        message: expect.stringMatching(/ is not supported: /),
        details: { param: Object.keys(fields)[0] },
      },
    });
  });

  it('takes what has no bearing on it', async () => {
    const toy = server('x');
    const headers = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'a,b' };
    const cache_control = { type: 'ephemeral' };
    const body = {
      ...question,
      system: [{ type: 'text', text: 'Be kind.', cache_control }],
      messages: [user([{ type: 'text', text: 'Hi', cache_control, citations: null }])],
      metadata: { user_id: 'u' },
      service_tier: 'auto',
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      output_config: { effort: 'high' },
      thinking: { type: 'enabled', budget_tokens: 1024 },
    };
    expect((await toy.post(`${PATH}?beta=true`, body, { headers })).status).toBe(200);
  });
});

describe('thinking', () => {
  const text = '<think>Hm. Yes.</think>\n\nYes.';

  it('is a block before the text, with a signature', async () => {
    const { content, usage } = await create(server(text, THINKS), {});
    const signature = expect.stringMatching(/^[\w+/]{43}=$/);
    expect(content).toEqual([
      { type: 'thinking', thinking: 'Hm. Yes.', signature },
      { type: 'text', text: 'Yes.' },
    ]);
    expect(usage.output_tokens_details.thinking_tokens).toBeGreaterThan(8);
  });

  it('is streamed, and signed at its end', async () => {
    const events = await stream(server(text, THINKS), {});
    const deltas = events.filter(({ type, index }) => type === 'content_block_delta' && index === 0);
    const types = deltas.map(({ delta }) => delta.type);
    expect(new Set(types.slice(0, -1))).toEqual(new Set(['thinking_delta']));
    expect(types.at(-1)).toBe('signature_delta');
    expect(deltas.map(({ delta }) => delta.thinking ?? '').join('')).toBe('Hm. Yes.');
    const whole = await create(server(text, THINKS), {});
    expect(deltas.at(-1).delta.signature).toBe(whole.content[0].signature);
  });

  it('may be left out of its block', async () => {
    const thinking = { type: 'adaptive', display: 'omitted' };
    const { content } = await create(server(text, THINKS), { thinking });
    expect(content[0]).toMatchObject({
      type: 'thinking',
      thinking: '',
      signature: expect.stringMatching(/=$/),
    });
    const events = await stream(server(text, THINKS), { thinking });
    expect(JSON.stringify(events)).not.toContain('thinking_delta');
  });

  it.each([
    [{}, false],
    [{ thinking: { type: 'disabled' } }, false],
    [{ thinking: { type: 'enabled', budget_tokens: 2000 } }, true],
    [{ thinking: { type: 'adaptive' } }, true],
    [{ thinking: { type: 'enabled' }, chat_template_kwargs: { enable_thinking: false } }, false],
  ])('is switched where the template has a switch: %j', async (fields, enable_thinking) => {
    const toy = server(text, THINKS);
    await create(toy, fields);
    expect(toy.rendered[0]!.options.variables).toEqual({ enable_thinking });
    const without = server(text, '{{ messages }}');
    if (!('chat_template_kwargs' in fields)) await create(without, fields);
    expect(without.rendered[0]?.options.variables ?? {}).toEqual({});
  });

  it('of earlier answers reaches the template', async () => {
    const toy = server(text, THINKS);
    const content = [
      { type: 'thinking', thinking: 'Hm.', signature: 's' },
      { type: 'redacted_thinking', data: 'x' },
      { type: 'text', text: 'Yes.' },
    ];
    await create(toy, { messages: [user('Hi'), { role: 'assistant', content }, user('Why?')] });
    expect(toy.rendered[0]!.messages[1]).toEqual({
      role: 'assistant',
      content: 'Yes.',
      reasoning_content: 'Hm.',
    });
  });
});

describe('a stream', () => {
  it("has Anthropic's events in their order", async () => {
    const events = await stream(server(`So.\n${call}`, HERMES), { tools });
    const types = events.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]);
    expect(types).toEqual([
      'message_start',
      'ping',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
    expect(events[0].message).toMatchObject({
      id: expect.stringMatching(/^msg_/),
      content: [],
      stop_reason: null,
      usage: { input_tokens: expect.any(Number) },
    });
    const starts = events.filter(({ type }) => type === 'content_block_start');
    expect(starts).toMatchObject([
      { index: 0, content_block: { type: 'text', text: '' } },
      { index: 1, content_block: { type: 'tool_use', name: 'weather', input: {} } },
    ]);
    const json = events.map(({ delta }) => delta?.partial_json ?? '').join('');
    expect(JSON.parse(json)).toEqual({ city: 'Ur' });
    expect(events.at(-2)).toMatchObject({
      delta: { stop_reason: 'tool_use', stop_sequence: null },
      usage: { output_tokens: expect.any(Number) },
    });
  });

  it('sends a ping in a long silence', async () => {
    const toy = toyServer(() => [{ tokens: [65] }, { waitMs: 60 }, ...say('B')], {
      eventStream: { keepAliveMs: 10 },
    });
    const events = await readEvents(await toy.post(PATH, { ...question, stream: true }));
    expect(events.filter(({ type }) => type === 'ping').length).toBeGreaterThan(1);
  });

  it('ends with an error event where the engine fails', async () => {
    const toy = toyServer(() => [{ tokens: [65] }, { error: new RequestError('It broke.') }]);
    const events = await stream(toy, {});
    expect(events.at(-1)).toEqual({
      type: 'error',
      error: { type: 'api_error', message: 'It broke.', details: { error_code: 'engine_error' } },
    });
  });
});
