import { describe, expect, it } from 'vitest';
import { RequestError } from '../../../../callbacks/token-request.js';
import { bytesOf, templatedCodec, toyCodec } from '../../support/toy-codec.js';
import { say, type ToyOptions, toyServer } from '../../support/toy-server.js';
import { type Part, readLines } from './support.js';

const messages = [{ role: 'user', content: 'Hi' }];
const whole = { model: 'toy', messages, stream: false };
const HERMES = '{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}';
const THINKS = "{{ messages }}{% if enable_thinking is defined %}{% endif %}{{ content.split('</think>') }}";

function server(text: string, options: ToyOptions = {}) {
  const toy = toyServer(() => say(text), options);
  const post = (fields: object) => toy.post('/api/chat', { ...whole, ...fields });
  const ask = async (fields: object = {}) => (await (await post(fields)).json()) as Part;
  return { toy, post, ask };
}

const promptOf = ({ toy }: ReturnType<typeof server>, index = 0) => {
  const detokenizer = toyCodec.createDetokenizer({ skipSpecialTokens: true });
  return detokenizer.push(toy.engine.requests[index]!.promptTokens) + detokenizer.flush();
};

describe('POST /api/chat', () => {
  it('answers in one object, with counts and durations in whole nanoseconds', async () => {
    const own = server('Hello');
    const answer = await own.ask();
    expect(answer).toMatchObject({
      model: 'toy',
      message: { role: 'assistant', content: 'Hello' },
      done: true,
      done_reason: 'stop',
      prompt_eval_count: own.toy.engine.requests[0]!.promptTokens.length,
      eval_count: 5,
    });
    expect(new Date(answer.created_at).toISOString()).toBe(answer.created_at);
    for (const name of [
      'total_duration',
      'load_duration',
      'prompt_eval_duration',
      'eval_duration',
    ] as const) {
      expect(Number.isSafeInteger(answer[name]), name).toBe(true);
      expect(answer[name], name).toBeGreaterThanOrEqual(0);
    }
    expect(answer.total_duration).toBeGreaterThan(0);
  });

  it('streams lines of JSON by default, of which the last alone is the end', async () => {
    const { toy } = server('abc');
    const response = await toy.post('/api/chat', { model: 'toy:latest', messages });
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    const lines = await readLines<Part>(response);
    expect(lines.map(({ message }) => message!.content)).toEqual(['a', 'b', 'c', '']);
    expect(lines.map(({ done }) => done)).toEqual([false, false, false, true]);
    expect(lines.every(({ model }) => model === 'toy:latest')).toBe(true);
    expect(lines.at(-1)).toMatchObject({ done_reason: 'stop', eval_count: 3 });
    expect(lines[0]!.done_reason).toBe(undefined);
  });

  it('draws as Ollama does where nothing is said, and hands its options to the engine', async () => {
    const own = server('x');
    await own.ask();
    expect(own.toy.engine.requests[0]).toMatchObject({
      temperature: 0.8,
      topK: 40,
      topP: expect.closeTo(0.9),
      repetitionPenalty: 1.1,
      penaltyLastN: 64,
      maxNewTokens: 64,
    });
    await own.ask({
      options: {
        temperature: 0.5,
        top_k: 7,
        top_p: 0.75,
        min_p: 0.25,
        repeat_penalty: 1.5,
        presence_penalty: 0.5,
        frequency_penalty: -0.5,
        seed: 42,
        num_predict: 9,
        mirostat: 0,
        num_ctx: 4096,
        num_thread: 2,
        made_up: 1,
      },
    });
    expect(own.toy.engine.requests[1]).toMatchObject({
      temperature: 0.5,
      topK: 7,
      topP: 0.75,
      minP: 0.25,
      repetitionPenalty: 1.5,
      presencePenalty: 0.5,
      frequencyPenalty: -0.5,
      seed: 42n,
      maxNewTokens: 9,
    });
    await own.ask({ options: { repeat_penalty: 1.5, repeat_last_n: 0, top_k: -1, seed: -1 } });
    expect(own.toy.engine.requests[2]).toMatchObject({ repetitionPenalty: 1.5, penaltyLastN: 0, topK: 0 });
  });

  it('ends where the context is full, and says length', async () => {
    const own = server('Hello', { model: { maxSeqLen: 40 } });
    await own.ask({ options: { num_predict: 100_000 } });
    const { promptTokens, maxNewTokens } = own.toy.engine.requests[0]!;
    expect(maxNewTokens).toBe(40 - promptTokens.length);
    const cut = toyServer(() => [{ tokens: [97] }, { finish: 'length' }]);
    expect(await (await cut.post('/api/chat', whole)).json()).toMatchObject({ done_reason: 'length' });
  });

  it('ends at a stop text', async () => {
    expect((await server('one END two').ask({ options: { stop: 'END' } })).message!.content).toBe('one ');
    const answer = await server('one END two').ask({ options: { stop: ['two', 'one'] } });
    expect(answer).toMatchObject({ message: { content: '' }, done_reason: 'stop' });
  });

  it('goes on with a last message of the assistant', async () => {
    const own = server('!');
    await own.ask({ messages: [...messages, { role: 'assistant', content: 'Hel' }] });
    expect(promptOf(own)).toBe('<user>Hi</><assistant>Hel');
    await own.ask();
    expect(promptOf(own, 1)).toBe('<user>Hi</><assistant>');
  });

  it('follows a format: JSON, or a schema', async () => {
    const own = server('{}');
    await own.ask({ format: 'json' });
    const schema = { type: 'object', properties: { a: { type: 'integer' } } };
    await own.ask({ format: schema });
    await own.ask({ format: '' });
    expect(own.toy.engine.requests.map(({ guide }) => guide)).toEqual([
      { type: 'json', guide: '' },
      { type: 'json_schema', guide: JSON.stringify(schema) },
      undefined,
    ]);
    const refused = await own.post({ format: { type: 'colour' } });
    expect(refused.status).toBe(400);
    expect(((await refused.json()) as Part).error).toMatch(/schema/);
  });

  it('only loads where there are no messages', async () => {
    const own = server('x');
    expect(await own.ask({ messages: [] })).toMatchObject({
      message: { role: 'assistant', content: '' },
      done: true,
      done_reason: 'load',
    });
    expect(await own.ask({ messages: undefined, keep_alive: 0 })).toMatchObject({ done_reason: 'unload' });
    expect(own.toy.engine.requests).toEqual([]);
  });

  it('gives log-probs, with others in their places', async () => {
    const toy = toyServer(() => [
      { tokens: [97], logProbs: [-0.5], top: [[[97, -0.5]]] },
      { finish: 'stop' },
    ]);
    const answer = (await (
      await toy.post('/api/chat', { ...whole, logprobs: true, top_logprobs: 1 })
    ).json()) as Part;
    expect(answer.logprobs).toEqual([
      { token: 'a', logprob: -0.5, bytes: [97], top_logprobs: [{ token: 'a', logprob: -0.5, bytes: [97] }] },
    ]);
  });
});

describe('calls of functions in /api/chat', () => {
  const parameters = { type: 'object', properties: { city: { type: 'string' } } };
  const tools = [{ type: 'function', function: { name: 'weather', description: 'Of a city.', parameters } }];
  const call = (args: string) => `<tool_call>\n{"name": "weather", "arguments": ${args}}\n</tool_call>`;
  const model = { codec: templatedCodec(HERMES), maxInputLen: 4000, maxSeqLen: 5000, defaultMaxTokens: 1000 };
  const calls = [
    {
      id: expect.stringMatching(/^call_/),
      function: { index: 0, name: 'weather', arguments: { city: 'Rome' } },
    },
    {
      id: expect.stringMatching(/^call_/),
      function: { index: 1, name: 'weather', arguments: { city: 'Oslo' } },
    },
  ];
  const text = `Sure. ${call('{"city": "Rome"}')}${call('{"city": "Oslo"}')}`;

  it('have arguments as objects', async () => {
    const answer = await server(text, { model }).ask({ tools });
    expect(answer).toMatchObject({ message: { tool_calls: calls }, done_reason: 'stop' });
    expect(answer.message!.content.trim()).toBe('Sure.');
  });

  it('come whole in a stream', async () => {
    const { toy } = server(text, { model });
    const lines = await readLines<Part>(await toy.post('/api/chat', { model: 'toy', messages, tools }));
    expect(lines.flatMap(({ message }) => message!.tool_calls ?? [])).toEqual(calls);
  });

  it('are left out where they are cut off', async () => {
    const answer = await server('<tool_call>\n{"name": "weather", "arguments": {"city": "Ro', { model }).ask({
      tools,
    });
    expect(answer.message!.tool_calls).toBe(undefined);
  });

  it('reach the template with the results that answer them, by name or in their order', async () => {
    const seen: object[] = [];
    const codec = {
      ...templatedCodec(HERMES),
      encodeChat: (given: readonly object[]) => {
        seen.push(...given);
        return bytesOf('x');
      },
    };
    const made = (name: string, args: object) => ({ function: { name, arguments: args } });
    await server('ok', { model: { ...model, codec } }).ask({
      messages: [
        ...messages,
        { role: 'assistant', content: '', tool_calls: [made('a', { n: 1 }), made('b', {})] },
        { role: 'tool', content: 'of b', tool_name: 'b' },
        { role: 'tool', content: 'of a' },
      ],
      tools,
    });
    const [, asked, ...results] = seen as { tool_calls: { id: string; function: object }[] }[];
    const [a, b] = asked!.tool_calls;
    expect([a!.function, b!.function]).toEqual([
      { name: 'a', arguments: '{"n":1}' },
      { name: 'b', arguments: '{}' },
    ]);
    expect(a!.id).toMatch(/^[a-z0-9]{9}$/);
    expect(results).toEqual([
      { role: 'tool', content: 'of b', name: 'b', tool_call_id: b!.id },
      { role: 'tool', content: 'of a', name: 'a', tool_call_id: a!.id },
    ]);
  });
});

it("hands Ollama's samplers to the engine", async () => {
  const own = server('x');
  const options = { typical_p: 0.5, mirostat: 2, mirostat_tau: 3, mirostat_eta: 0.2, repeat_last_n: -1 };
  expect((await own.post({ options })).status).toBe(200);
  expect(own.toy.engine.requests[0]).toMatchObject({
    ...{ typicalP: 0.5, mirostat: 2, mirostatTau: 3, mirostatEta: 0.2, penaltyLastN: -1 },
  });
});

it('treats fields that nobody knows by the rule of all routes', async () => {
  const fields = { unheard_of: 1, options: { not_known: 2 } };
  const told = await server('x').post(fields);
  expect(told.status).toBe(200);
  expect(told.headers.get('x-unknown-fields')).toBe('unheard_of, options.not_known');
  const refused = await server('x', { unknownFields: 'refuse' }).post(fields);
  expect([refused.status, await refused.json()]).toEqual([
    400,
    { error: expect.stringContaining('unheard_of') },
  ]);
  const misplaced = await server('x').post({ temperature: 0.5 });
  expect([misplaced.status, await misplaced.json()]).toEqual([
    400,
    { error: expect.stringContaining("use 'options.temperature'") },
  ]);
});

it('takes seeds of 64 bits, as programs in Go draw them', async () => {
  const own = server('x');
  expect((await own.post({ options: { seed: 6e18 } })).status).toBe(200);
  expect(own.toy.engine.requests.at(-1)!.seed).toBe(6_000_000_000_000_000_000n);
  expect((await own.post({ options: { seed: 2 ** 64 } })).status).toBe(400);
});

describe('thinking in /api/chat', () => {
  const text = '<think>\nHm.\n</think>\n\nYes.';
  const model = { codec: templatedCodec(THINKS) };

  it('comes apart from the answer', async () => {
    expect((await server(text, { model }).ask()).message).toEqual({
      role: 'assistant',
      content: 'Yes.',
      thinking: expect.stringContaining('Hm.'),
    });
  });

  it('is asked for, and refused by a model that does not', async () => {
    expect((await server(text, { model }).post({ think: true })).status).toBe(200);
    expect((await server(text, { model }).post({ think: 'high' })).status).toBe(200);
    const refused = await server('x', { model: { codec: templatedCodec('{{ messages }}') } }).post({
      think: true,
    });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toEqual({ error: '"toy" does not support thinking' });
  });
});

describe('a request of /api/chat that is refused', () => {
  it.each([
    ['an unknown model', { model: 'none' }, 404, "model 'none' not found"],
    ['no model', { model: undefined }, 400, "The field 'model' is required."],
    [
      'a picture',
      { messages: [{ role: 'user', content: '', images: ['aGk='] }] },
      400,
      /messages\[0\]\.images/,
    ],
    ['a role', { messages: [{ role: 'king', content: '' }] }, 400, /messages\[0\]\.role/],
    ['a temperature', { options: { temperature: -1 } }, 400, /options\.temperature/],
    ['a sampler that is not there', { options: { tfs_z: 0.5 } }, 400, /options\.tfs_z.*not supported/],
    ['a form of another API', { guided_regex: 'a' }, 400, /'guided_regex' is not supported/],
    [
      "another API's name of a form",
      { json_schema: {} },
      400,
      /'json_schema' is not supported: use 'format'/,
    ],
    ['a template', { chat_template: 'x' }, 400, /'chat_template' is not supported/],
    ['a salt of the cache', { cache_salt: 'x' }, 400, /'cache_salt' is not supported/],
    ['a sampler beside the options', { mirostat: 2 }, 400, /use 'options.mirostat'/],
    ['a sampler of another API', { options: { dry_multiplier: 1 } }, 400, /'options.dry_multiplier' is not/],
    ['a version of mirostat', { options: { mirostat: 3 } }, 400, /options\.mirostat/],
    ['a duration', { keep_alive: 'soon' }, 400, /keep_alive.*soon.*5m/],
    ['a format', { format: 'xml' }, 400, /format/],
  ])('for %s is told why, in one text', async (_, fields, status, error) => {
    const response = await server('x').post(fields);
    expect(response.status).toBe(status);
    const body = (await response.json()) as Part;
    expect(Object.keys(body)).toEqual(['error']);
    if (typeof error === 'string') expect(body.error).toBe(error);
    else expect(body.error).toMatch(error);
  });

  it('for a wrong path or method has the same form', async () => {
    const { toy } = server('x');
    expect(await (await toy.get('/api/nothing')).json()).toEqual({
      error: expect.stringContaining('/api/nothing'),
    });
    expect((await toy.get('/api/chat')).status).toBe(405);
    expect(await (await toy.post('/api/chat', '{')).json()).toEqual({ error: expect.any(String) });
  });

  it('in the middle of a stream is a line with the error', async () => {
    const toy = toyServer(() => [
      { tokens: [97] },
      { error: new RequestError('it broke', { kind: 'internal' }) },
    ]);
    const lines = await readLines<Part>(await toy.post('/api/chat', { model: 'toy', messages }));
    expect(lines.map(({ error }) => error)).toEqual([undefined, expect.stringContaining('broke')]);
  });

  it('ends with its client', async () => {
    const toy = toyServer(() => [{ tokens: [97] }, { waitMs: 60_000 }, { finish: 'stop' }]);
    const leaving = new AbortController();
    const response = await toy.post('/api/chat', { model: 'toy', messages }, { signal: leaving.signal });
    const reader = response.body!.getReader();
    await reader.read();
    leaving.abort();
    await reader.cancel();
    await expect.poll(() => toy.engine.cancelled).toBe(1);
  });
});

describe('a chat that is too long', () => {
  const system = { role: 'system', content: 'Be kind' };
  const turn = (index: number) => [
    { role: 'user', content: `${index}?`.padEnd(30, 'q') },
    { role: 'assistant', content: `${index}!`.padEnd(30, 'a') },
  ];
  const long = [system, ...[0, 1, 2, 3, 4, 5].flatMap(turn), ...messages];

  it('loses its oldest messages, but neither those of the system nor the last, and says so', async () => {
    const own = server('x');
    const response = await own.post({ messages: long });
    expect(response.status).toBe(200);
    const prompt = promptOf(own);
    expect(prompt).toMatch(/^<system>Be kind<\/><assistant>4!a+<\/><user>5\?/);
    expect(prompt).toMatch(/<user>Hi<\/><assistant>$/);
    expect(response.headers.get('x-skein-warning')).toBe(
      'The 9 oldest messages were left out: the chat is longer than the context of 256 tokens.',
    );
    const short = await own.post({ messages: [system, ...messages] });
    expect(short.headers.get('x-skein-warning')).toBeNull();
  });

  it('loses a call together with its result', async () => {
    const own = server('x');
    const calls = [{ function: { name: 'look', arguments: { at: 'b'.repeat(200) } } }];
    await own.ask({
      messages: [
        { role: 'user', content: 'u'.repeat(100) },
        { role: 'assistant', content: 'a'.repeat(100), tool_calls: calls },
        { role: 'tool', content: 'found' },
        ...messages,
      ],
    });
    expect(promptOf(own)).toBe('<user>Hi</><assistant>');
  });

  it('is an error with truncate: false, and where the last message alone is too long', async () => {
    const own = server('x');
    const last = [{ role: 'user', content: 'u'.repeat(300) }];
    for (const fields of [{ messages: long, truncate: false }, { messages: [...long, ...last] }]) {
      const response = await own.post(fields);
      expect(response.status).toBe(400);
      const { error } = (await response.json()) as Part;
      expect(error).toMatch(
        /^This model's maximum context length is 256 tokens. However, the prompt has \d+/,
      );
    }
    expect(own.toy.engine.requests).toHaveLength(0);
  });
});

it('keeps a silent stream open with what readers of JSON skip', async () => {
  const toy = toyServer(() => [{ waitMs: 60 }, { tokens: [97] }, { waitMs: 60 }, { finish: 'stop' }], {
    eventStream: { keepAliveMs: 10 },
  });
  const response = await toy.post('/api/chat', { model: 'toy', messages });
  const text = await response.clone().text();
  expect(text).toMatch(/^ +\{/);
  expect(await readLines<Part>(response)).toHaveLength(2);
});
