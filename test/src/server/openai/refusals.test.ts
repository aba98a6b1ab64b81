import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { input, type NamedText, option, says } from '../../../../base/named-text.js';
import { RequestError } from '../../../../callbacks/token-request.js';
import { draws } from '../../../support/scale.js';
import { say, toyServer } from '../../support/toy-server.js';

const chat = '/v1/chat/completions';
const messages = [{ role: 'user', content: 'Hi' }];

interface ErrorBody {
  error: { message: string; type: string; param: string | null; code: string | null };
}

async function refusal(
  path: string,
  body: unknown,
  init?: RequestInit,
): Promise<ErrorBody['error'] & { status: number }> {
  const toy = toyServer(() => say('x'), { unknownFields: 'refuse' });
  const response = await toy.post(path, body, init);
  const { error } = (await response.json()) as ErrorBody;
  expect(Object.keys(error).sort()).toEqual(['code', 'message', 'param', 'type']);
  expect(toy.engine.active).toBe(0);
  return { status: response.status, ...error };
}

describe('a request that is refused', () => {
  it.each<[string, object, string, string?]>([
    ['a text for a number', { temperature: '1' }, 'temperature', 'expected a number.'],
    ['a number for a text', { messages: [{ role: 'user', content: 5 }] }, 'messages[0].content'],
    [
      'an unknown role',
      { messages: [{ role: 'boss', content: 'x' }] },
      'messages[0].role',
      "expected one of 'system', 'developer', 'user', 'assistant', 'tool', 'function'.",
    ],
    ['a message that is none', { messages: ['Hi'] }, 'messages[0]', 'expected an object.'],
    ['no messages', { messages: [] }, 'messages', 'expected a list that is not empty.'],
    ['messages of another type', { messages: 'Hi' }, 'messages', 'expected a list.'],
    [
      'an image',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'a' },
              { type: 'image_url', image_url: 'data:;base64,aGk=' },
            ],
          },
        ],
      },
      'messages[0].content[1].image_url',
    ],
    ['a temperature too high', { temperature: 3 }, 'temperature', 'expected at most 2.'],
    ['a top_p below 0', { top_p: -0.5 }, 'top_p', 'expected at least 0.'],
    ['an n too large', { n: 1e9 }, 'n', 'expected at most 128.'],
    ['a fraction of tokens', { max_tokens: 1.5 }, 'max_tokens', 'expected an integer.'],
    [
      'two limits of one answer',
      { max_tokens: 3, max_completion_tokens: 4 },
      'max_tokens',
      "'max_completion_tokens' is 4 and 'max_tokens' is 3: they are two names of one limit.",
    ],
    [
      'two biases of a token',
      {
        logit_bias: [
          [1, 5],
          [1, -5],
        ],
      },
      'logit_bias[1]',
      'token 1 has a bias already.',
    ],
    ['an id written otherwise', { logit_bias: { '01': 5 } }, 'logit_bias.01'],
    ['no tokens at all', { max_tokens: 0 }, 'max_tokens', 'expected at least 1.'],
    ['a text for a switch', { stream: 'yes' }, 'stream', 'expected true or false.'],
    [
      'too many stop tokens',
      { stop_token_ids: Array(65).fill(1) },
      'stop_token_ids',
      'expected at most 64 items.',
    ],
    ['a salt without text', { cache_salt: '' }, 'cache_salt', 'expected a string that is not empty.'],
    ['an empty stop string', { stop: [''] }, 'stop[0]'],
    ['a seed that is no integer', { seed: 0.5 }, 'seed'],
    ['too many top_logprobs', { logprobs: true, top_logprobs: 21 }, 'top_logprobs'],
    ['top_logprobs without logprobs', { top_logprobs: 2 }, 'top_logprobs'],
    ['stream_options without stream', { stream_options: { include_usage: true } }, 'stream_options'],
    ['an unknown stream option', { stream: true, stream_options: { usage: true } }, 'stream_options.usage'],
    ['an unknown field', { temprature: 1 }, 'temprature'],
    ['a bias beyond its range', { logit_bias: { 5: 101 } }, 'logit_bias.5'],
    ['a bias that is no number', { logit_bias: { word: 'much' } }, 'logit_bias.word'],
    ['biases as a list of no pairs', { logit_bias: [1] }, 'logit_bias[0]'],
    ['a seed beyond 64 bits', { seed: 2 ** 63 }, 'seed', 'expected an integer from -2^63 to 2^63 - 1.'],
    ['a seed below them', { seed: -(2 ** 63) - 2048 }, 'seed', 'expected an integer from -2^63 to 2^63 - 1.'],
    ['an empty bad word', { bad_words: ['x', ''] }, 'bad_words[1]'],
    ['an n-gram size below 0', { no_repeat_ngram_size: -1 }, 'no_repeat_ngram_size'],
    ['min_tokens above max_tokens', { min_tokens: 6, max_tokens: 5 }, 'min_tokens', '5 tokens at most'],
    ['a continuation of nothing', { continue_final_message: true }, 'continue_final_message'],
  ])('%s: 400 with the name of the field', async (_, fields, param, expected = '') => {
    const error = await refusal(chat, { messages, ...fields });
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error', param });
    expect(error.message).toContain(param);
    expect(error.message).toContain(expected);
    expect(error.message).toMatch(/^[^\n]*[^.?][.?]$/);
    expect(error.message).not.toMatch(/Too (big|small)|Invalid (input|option|discriminator)|[<>]=/);
  });

  it.each<[NamedText, string | null, string, string | null, string]>([
    [
      says`${input('runtime_top_k')} is 5; it must be less.`,
      'runtime_top_k',
      'top_k is 5; it must be less.',
      'top_k',
      'prompt',
    ],
    [
      says`${input('request_output_len')} is 5; too many.`,
      'request_output_len',
      'max_tokens is 5; too many.',
      'max_tokens',
      'prompt',
    ],
    [
      says`${input('time_limit_ms')} is 0; too few.`,
      'time_limit_ms',
      'time_limit_ms is 0; too few.',
      'time_limit_ms',
      'prompt',
    ],
    [
      says`${input('min_length')} is 9; too many.`,
      'min_length',
      'min_tokens is 9; too many.',
      'min_tokens',
      'prompt',
    ],
    [
      says`${input('stop_words_list')} has too many words.`,
      'stop_words_list',
      'stop_token_ids has too many words.',
      'stop_token_ids',
      'prompt',
    ],
    [
      says`${input('input_ids')} holds 900 at place 1.`,
      'input_ids',
      'The prompt holds 900 at place 1.',
      'prompt',
      'prompt',
    ],
    [
      says`${input('input_ids')} holds 900 at place 1.`,
      'input_ids',
      'The prompt holds 900 at place 1.',
      'messages',
      'messages',
    ],
    [
      says`The prompt of 20 tokens does not fit into one iteration of ${option('maxNumTokens')} = 16; chunked context is off.`,
      'input_ids',
      'The prompt of 20 tokens does not fit into one iteration of --max-batch-tokens = 16; chunked context is off.',
      'messages',
      'messages',
    ],
    ['Something else.', null, 'Something else.', null, 'messages'],
  ])('by the engine (%s) is told in the words of the API', async (text, tensor, told, param, field) => {
    const toy = toyServer(() => [{ error: new RequestError(text, { kind: 'invalid', field: tensor }) }]);
    const path = field === 'messages' ? chat : '/v1/completions';
    const response = await toy.post(path, field === 'messages' ? { messages } : { prompt: 'abc' });
    expect(response.status).toBe(400);
    expect(((await response.json()) as ErrorBody).error).toMatchObject({ message: told, param });
  });

  it.each<[string, object, string, string]>([
    [chat, { messages, response_format: { type: 'json_object' } }, 'response_format', 'response_format'],
    [chat, { messages, guided_regex: 'a+' }, 'guided_regex', 'guided_regex'],
    [
      chat,
      { messages, tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: 'required' },
      'tools',
      'tools',
    ],
    [
      '/v1/completions',
      { prompt: 'a', structured_outputs: { regex: 'a+' } },
      'structured_outputs',
      'structured_outputs',
    ],
    [
      '/v1/responses',
      { input: 'a', text: { format: { type: 'json_object' } } },
      'text.format',
      'text.format',
    ],
  ])(
    'of a guide by the engine (%s %j) is told by the name of its field',
    async (path, body, param, written) => {
      const model = { maxInputLen: 4000, maxSeqLen: 5000 };
      const tensor = 'guided_decoding_guide';
      for (const [kind, text, told] of [
        ['guide', 'The guide is too large.', 'The guide is too large.'],
        ['invalid', says`${input(tensor)} is refused.`, `${written} is refused.`],
      ] as const) {
        const error = new RequestError(text, { kind, field: tensor });
        const toy = toyServer(() => [{ error }], { model });
        const response = await toy.post(path, body);
        expect(response.status).toBe(400);
        expect(((await response.json()) as ErrorBody).error).toMatchObject({ message: told, param });
      }
    },
  );

  it.each<[string, unknown]>([
    ['audio', {}],
    ['web_search_options', {}],
  ])('%s cannot work yet and is refused by name', async (field, value) => {
    const error = await refusal(chat, { messages, [field]: value });
    expect(error).toMatchObject({ status: 400, param: field, code: 'unsupported_parameter' });
  });

  it('suffix is refused by name, as the model cannot infill', async () => {
    const error = await refusal('/v1/completions', { prompt: 'a', suffix: 'b' });
    expect(error).toMatchObject({ status: 400, param: 'suffix', code: 'unsupported_parameter' });
  });

  it('fields that ask for nothing, and null, are accepted', async () => {
    const toy = toyServer(() => say('x'));
    const harmless = {
      tools: [],
      tool_choice: 'auto',
      response_format: { type: 'text' },
      logit_bias: {},
      bad_words: [],
      best_of: 1,
      use_beam_search: false,
      length_penalty: 1,
      modalities: ['text'],
      store: false,
      user: 'me',
      metadata: { a: '1' },
      temperature: null,
      stop: null,
      seed: null,
      max_tokens: null,
      stream_options: null,
      functions: null,
      function_call: null,
    };
    expect((await toy.post(chat, { messages, ...harmless })).status).toBe(200);
  });

  it('a typing error gets a hint', async () => {
    expect((await refusal(chat, { messages, max_token: 1 })).message).toContain("'max_tokens'");
  });

  it('a missing field is named', async () => {
    expect(await refusal(chat, {})).toMatchObject({ param: 'messages', code: 'missing_required_parameter' });
  });

  it.each([
    ['broken JSON', '{"messages": ['],
    ['an empty body', ''],
    ['a list', '[]'],
    ['a text', '"x"'],
    ['null', 'null'],
    ['nesting without end', '['.repeat(200_000)],
  ])('%s is a 400', async (_, body) => {
    expect((await refusal(chat, body)).status).toBe(400);
  });

  it('bytes that are not UTF-8 are a 400', async () => {
    const toy = toyServer(() => say('x'));
    const response = await toy.app.request(chat, { method: 'POST', body: Uint8Array.of(0x22, 0xff, 0x22) });
    expect(response.status).toBe(400);
  });

  it('a body that is too large is a 413', async () => {
    const error = await refusal(chat, `{"x": "${'a'.repeat(17 * 1024 * 1024)}"}`);
    expect(error).toMatchObject({ status: 413, code: 'body_too_large' });
  });

  it('a prompt or an answer beyond the context is a 400 with the numbers', async () => {
    const long = await refusal(chat, { messages: [{ role: 'user', content: 'x'.repeat(300) }] });
    expect(long).toMatchObject({ status: 400, code: 'context_length_exceeded', param: 'messages' });
    expect(long.message).toMatch(/321.*200/);
    const answer = await refusal('/v1/completions', { prompt: 'abc', max_tokens: 1000 });
    expect(answer).toMatchObject({ status: 400, code: 'context_length_exceeded', param: 'prompt' });
    expect(answer.message).toMatch(/256.*1004.*4.*1000/);
  });

  it('a token outside the vocabulary is a 400', async () => {
    const error = await refusal('/v1/completions', { prompt: [1, 999] });
    expect(error).toMatchObject({ status: 400, param: 'prompt' });
    expect(error.message).toContain('999');
  });

  it('an unknown model is a 404 that names the models there are', async () => {
    const error = await refusal(chat, { messages, model: 'gpt-4' });
    expect(error).toMatchObject({ status: 404, code: 'model_not_found', param: 'model' });
    expect(error.message).toContain("'toy'");
  });

  it("the engine's own error is a 500 with its text; an unexpected one says nothing of itself", async () => {
    const engine = toyServer(() => [{ error: new RequestError('logits are NaN') }]);
    const known = (await (await engine.post(chat, { messages })).json()) as ErrorBody;
    expect(known.error).toMatchObject({ message: 'logits are NaN', code: 'engine_error' });
    const bug = toyServer(() => [{ error: new TypeError('secret detail') }]);
    const response = await bug.post(chat, { messages });
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain('secret');
  });
});

describe('a value that would be read as another', () => {
  const space = { whitespace_pattern: ' ?', disable_any_whitespace: true };
  const custom = (definition: string) => [
    { type: 'custom', name: 'x', format: { type: 'grammar', syntax: 'regex', definition } },
  ];

  it.each<[string, string, string, string, RegExp]>([
    [
      'a number beyond a double',
      chat,
      '"guided_json": {"const": 1e400}',
      'guided_json',
      /const is "Infinity"/,
    ],
    ['the same in a text', chat, '"guided_json": "{\\"enum\\": [[1e400]]}"', 'guided_json', /"Infinity"/],
    ['the schema false', chat, '"guided_json": false', 'guided_json', /is the schema false, which no answer/],
    [
      'white space and none',
      chat,
      `"structured_outputs": ${JSON.stringify({ json: {}, ...space })}`,
      'structured_outputs.whitespace_pattern',
      /exclude each other/,
    ],
    ['a negative id', chat, '"logit_bias": {"-1": 3}', 'logit_bias.-1', /-1 is no id/],
    ['half an id', chat, '"logit_bias": {"1.5": 3}', 'logit_bias.1.5', /1\.5 is no id/],
    [
      'null for a tool',
      '/v1/responses',
      '"input": "a", "tools": [null]',
      'tools[0]',
      /: expected an object\.$/,
    ],
    [
      "a custom tool's regex",
      '/v1/responses',
      `"input": "a", "tools": ${JSON.stringify(custom('a('))}, "tool_choice": "required"`,
      'tools[0].format.definition',
      /^The regular expression a\( is refused at place 2/,
    ],
    [
      'a name that objects do not keep',
      '/v1/conversations',
      '"metadata": {"__proto__": "x"}',
      'metadata.__proto__',
      /cannot be kept/,
    ],
    [
      'the same of a response',
      '/v1/responses',
      '"input": "a", "metadata": {"__proto__": "x"}',
      'metadata.__proto__',
      /cannot be kept/,
    ],
    [
      'a trigger as an item to keep',
      '/v1/conversations',
      '"items": [{"type": "compaction_trigger"}]',
      'items[0]',
      /compaction_trigger/,
    ],
  ])('is a 400: %s', async (_, path, fields, param, message) => {
    const asked = path === chat ? `"messages": ${JSON.stringify(messages)}, ` : '';
    const error = await refusal(path, `{${asked}${fields}}`);
    expect([error.status, error.param]).toEqual([400, param]);
    expect(error.message).toMatch(message);
  });

  it('is a 400: an empty number of a query', async () => {
    const toy = toyServer(() => say('x'));
    const { id } = (await (await toy.post('/v1/conversations', {})).json()) as { id: string };
    const asked = [
      `/v1/conversations/${id}/items?limit=`,
      '/v1/responses/resp_1?stream=true&starting_after=',
    ];
    for (const path of asked) {
      const response = await toy.get(path);
      expect(response.status).toBe(400);
      expect(await response.text()).toContain('expected a number, found nothing');
    }
  });
});

describe('bans that leave no token behind the first ones', () => {
  const sentence = 'The biases and bans of this request leave no token for place 3 of the answer.';
  const told = { message: sentence, code: 'no_token_left' };
  const isInvalid = { type: 'invalid_request_error', ...told };
  const routes = [
    [chat, { messages }, { error: isInvalid }],
    ['/v1/completions', { prompt: 'a' }, { error: isInvalid }],
    ['/v1/responses', { input: 'a' }, { error: isInvalid }],
    [
      '/v1/messages',
      { messages, max_tokens: 9 },
      {
        error: { type: 'invalid_request_error', message: sentence, details: { error_code: 'no_token_left' } },
      },
    ],
    ['/api/chat', { model: 'toy', messages }, { error: sentence }],
  ] as const;

  it.each(routes.flatMap((route) => [[...route, true] as const, [...route, false] as const]))(
    '%s %j: %j, streamed: %s',
    async (path, fields, error, stream) => {
      const errors: unknown[] = [];
      const log = {
        debug: () => {},
        info: () => {},
        warn: () => {},
        error: (one: unknown) => errors.push(one),
      };
      const fails = { error: new RequestError(sentence, { kind: 'noToken' }) };
      const toy = toyServer(() => [{ tokens: [104] }, { waitMs: 5 }, fails], { log });
      const response = await toy.post(path, { ...fields, stream });
      expect(response.status).toBe(stream ? 200 : 400);
      if (stream) {
        const lines = (await response.text()).split('\n').map((line) => line.replace(/^data: /, ''));
        const events = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as object);
        const found = events.find((event) => 'error' in event && event.error !== null);
        expect(found).toMatchObject(error);
      } else expect(await response.json()).toMatchObject(error);
      expect(errors).toEqual([]);
    },
  );
});

describe('a full queue (trap 15)', () => {
  it('is 429 with Retry-After and no stream header, streamed or not', async () => {
    const toy = toyServer(() => [{ waitMs: 10_000 }, { finish: 'stop' }], { maxActive: 1 });
    const leave = new AbortController();
    const first = toy.post(chat, { messages }, { signal: leave.signal });
    await expect.poll(() => toy.engine.active).toBe(1);
    for (const stream of [true, false]) {
      const refused = await toy.post(chat, { messages, stream });
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(refused.headers.get('content-type')).toContain('application/json');
      expect(await refused.json()).toMatchObject({ error: { code: 'queue_full' } });
    }
    leave.abort();
    await expect.poll(() => toy.engine.active).toBe(0);
    await first;
  });

  it('refuses n choices together: those that found a place are given up', async () => {
    const toy = toyServer(() => [{ waitMs: 10_000 }, { finish: 'stop' }], { maxActive: 2 });
    expect((await toy.post(chat, { messages, n: 3 })).status).toBe(429);
    expect(toy.engine.requests).toHaveLength(2);
    expect(toy.engine.active).toBe(0);
  });
});

describe('any JSON at all', () => {
  it.each([chat, '/v1/completions'])('never makes %s fail with a 5xx', async (path) => {
    const toy = toyServer(() => say('x'));
    const field = fc.constantFrom(
      ...['messages', 'prompt', 'model', 'stop', 'n', 'seed', 'stream', 'stream_options', 'logprobs'],
      ...['temperature', 'max_tokens', 'tools', 'priority', 'stop_token_ids', 'echo', 'chat_template_kwargs'],
    );
    const value = fc.oneof(
      fc.jsonValue(),
      fc.constant(messages),
      fc.constant('text'),
      fc.integer(),
      fc.constant([{ role: 'user', content: null }]),
    );
    await fc.assert(
      fc.asyncProperty(fc.dictionary(field, value, { noNullPrototype: true }), async (body) => {
        const response = await toy.post(path, {
          ...(path === chat ? { messages } : { prompt: 'x' }),
          ...body,
        });
        await response.text();
        expect(response.status).toBeLessThan(500);
      }),
      { numRuns: draws(100) },
    );
    expect(toy.engine.active).toBe(0);
  });
});
