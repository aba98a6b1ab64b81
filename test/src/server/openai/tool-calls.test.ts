import { describe, expect, it } from 'vitest';
import type { TokenRequest } from '../../../../callbacks/token-request.js';
import { bytesOf, templatedCodec } from '../../support/toy-codec.js';
import { readChunks, say, toyServer } from '../../support/toy-server.js';

const messages = [{ role: 'user', content: 'hi' }];
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = [
  { type: 'function', function: { name: 'weather', description: 'Of a city.', parameters } },
  { type: 'function', function: { name: 'time' } },
];
const HERMES = '{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}';
const call = (name: string, args: string) =>
  `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;

interface Call {
  index?: number;
  id?: string;
  type?: string;
  function: { name?: string; arguments: string };
}
interface Choice {
  index: number;
  message: { content: string | null; tool_calls?: Call[]; reasoning?: string };
  delta: { role?: string; content?: string; tool_calls?: Call[] };
  logprobs: { content: { token: string }[] } | null;
  finish_reason: string | null;
}
interface Answer {
  choices: Choice[];
  error: { message: string; param: string; code: string };
}

function server(text: string, template: string | null = HERMES) {
  const seen: TokenRequest[] = [];
  const toy = toyServer(
    (request) => {
      seen.push(request);
      return [
        ...bytesOf(text).map((token) => ({ tokens: [token], logProbs: [-1] })),
        { finish: 'stop' as const },
      ];
    },
    {
      model: {
        maxInputLen: 4000,
        maxSeqLen: 5000,
        ...(template === null ? {} : { codec: templatedCodec(template) }),
      },
    },
  );
  const ask = async (fields: object): Promise<Answer> => {
    const response = await toy.post('/v1/chat/completions', { messages, tools, ...fields });
    return (await response.json()) as Answer;
  };
  const stream = async (fields: object): Promise<Choice[]> => {
    const response = await toy.post('/v1/chat/completions', { messages, tools, stream: true, ...fields });
    expect(response.status).toBe(200);
    return (await readChunks<Answer>(response)).flatMap(({ choices }) => choices);
  };
  return { toy, seen, ask, stream };
}

const promptOf = (request: TokenRequest | undefined) =>
  Buffer.from(Array.from(request!.promptTokens).filter((token) => token < 256)).toString();

describe('tool calls', () => {
  const text = `Let me look.\n${call('weather', '{"city": "Zürich"}')}\n${call('time', '{}')}`;

  it('come whole', async () => {
    const [choice] = (await server(text).ask({})).choices;
    expect(choice!.finish_reason).toBe('tool_calls');
    expect(choice!.message.content).toBe('Let me look.');
    expect(choice!.message.tool_calls).toEqual([
      {
        id: expect.stringMatching(/^call_\w{24}$/),
        type: 'function',
        function: { name: 'weather', arguments: '{"city": "Zürich"}' },
      },
      {
        id: expect.stringMatching(/^call_\w{24}$/),
        type: 'function',
        function: { name: 'time', arguments: '{}' },
      },
    ]);
    const ids = choice!.message.tool_calls!.map(({ id }) => id);
    expect(new Set(ids).size).toBe(2);
  });

  it('trap 5: streamed, each has its index, and its id, type and name once; arguments follow as they come', async () => {
    const choices = await server(text).stream({});
    const deltas = choices.flatMap(({ delta }) => delta.tool_calls ?? []);
    for (const index of [0, 1]) {
      const own = deltas.filter((delta) => delta.index === index);
      const [first, ...rest] = own;
      expect(first).toEqual({
        index,
        id: expect.any(String),
        type: 'function',
        function: { name: ['weather', 'time'][index], arguments: '' },
      });
      for (const delta of rest) expect(delta).toEqual({ index, function: { arguments: expect.any(String) } });
      expect(own.map((delta) => delta.function.arguments).join('')).toBe(['{"city": "Zürich"}', '{}'][index]);
    }
    // Deltas of one character each: they are not held back until the end.
    expect(deltas.filter(({ index }) => index === 0).length).toBeGreaterThan(10);
    expect(deltas.map(({ index }) => index)).toEqual(deltas.map(({ index }) => index).sort());
    expect(choices.map(({ delta }) => delta.content ?? '').join('')).toBe('Let me look.');
    expect(choices.filter(({ delta }) => delta.role !== undefined)).toHaveLength(1);
    const reasons = choices.map((choice) => choice.finish_reason).filter((reason) => reason !== null);
    expect(reasons).toEqual(['tool_calls']);
    expect(choices.at(-1)!.delta).toEqual({});
  });

  it('begin a stream with no content; a text begins it with an empty one', async () => {
    const made = call('weather', '{"city": "x"}');
    const first = async (text: string, fields: object) => (await server(text).stream(fields))[0]!.delta;
    const forced = { tool_choice: 'required' };
    for (const fields of [{}, forced, { ...forced, logprobs: true }]) {
      expect(await first(made, fields)).toEqual({ role: 'assistant', content: null });
    }
    for (const text of ['Let me look.', `I look.${made}`, ''])
      expect(await first(text, {})).toEqual({ role: 'assistant', content: '' });
    expect(await first(made, { tool_choice: 'none' })).toEqual({ role: 'assistant', content: '' });
  });

  it.each<[string, object, string]>([
    ['auto', { tool_choice: 'auto' }, 'tool_calls'],
    ['required', { tool_choice: 'required' }, 'tool_calls'],
    ['named', { tool_choice: { type: 'function', function: { name: 'weather' } } }, 'stop'],
  ])('trap 5: finish_reason of %s', async (_, fields, reason) => {
    const { ask, stream } = server(call('weather', '{"city": "x"}'));
    expect((await ask(fields)).choices[0]!.finish_reason).toBe(reason);
    expect((await stream(fields)).at(-1)!.finish_reason).toBe(reason);
  });

  it('trap 5: with none the text of a call is text', async () => {
    const { ask, seen } = server(text);
    const [choice] = (await ask({ tool_choice: 'none' })).choices;
    expect(choice!.message).toEqual({ role: 'assistant', content: text, refusal: null });
    expect(choice!.finish_reason).toBe('stop');
    expect(promptOf(seen[0])).not.toContain('weather');
  });

  it('trap 5: length where it is cut', async () => {
    const toy = toyServer(
      () => [...say(call('weather', '{"city": "x')).slice(0, -20), { finish: 'length' }],
      {
        model: { codec: templatedCodec(HERMES) },
      },
    );
    const response = await toy.post('/v1/chat/completions', { messages, tools: [tools[1]] });
    expect(((await response.json()) as Answer).choices[0]!.finish_reason).toBe('length');
  });

  it('that are none are content', async () => {
    const broken = '<tool_call>weather in Paris</tool_call>';
    const { ask, stream } = server(broken);
    const [choice] = (await ask({})).choices;
    expect(choice!.message.content).toBe(broken);
    expect(choice!.finish_reason).toBe('stop');
    expect((await stream({})).map(({ delta }) => delta.content ?? '').join('')).toBe(broken);
  });

  it('are of each choice its own, with all log-probs, whole and streamed', async () => {
    const { ask, stream } = server(text);
    const fields = { n: 2, logprobs: true };
    const whole = await ask(fields);
    const choices = await stream(fields);
    for (const index of [0, 1]) {
      const own = choices.filter((choice) => choice.index === index);
      const { message, logprobs } = whole.choices[index]!;
      expect(own.map(({ delta }) => delta.content ?? '').join('')).toBe(message.content);
      const args = own
        .flatMap(({ delta }) => delta.tool_calls ?? [])
        .map((delta) => delta.function.arguments);
      expect(args.join('')).toBe(message.tool_calls!.map((one) => one.function.arguments).join(''));
      const streamed = own.flatMap((choice) => choice.logprobs?.content ?? []);
      expect(streamed).toEqual(logprobs!.content);
      expect(streamed).toHaveLength(bytesOf(text).length);
    }
  });
});

describe('the guide', () => {
  const guideOf = async (fields: object, template = HERMES) => {
    const { ask, seen } = server('x', template);
    const answer = await ask(fields);
    expect(answer.error).toBeUndefined();
    return seen[0]!.guide === undefined ? undefined : JSON.stringify(seen[0]!.guide);
  };

  it('leaves an answer as the model likes with auto', async () => {
    expect(await guideOf({})).toBeUndefined();
    expect(await guideOf({ tool_choice: 'none', response_format: { type: 'text' } })).toBeUndefined();
  });

  it.each<[string, object, string[], string[]]>([
    ['required', { tool_choice: 'required' }, ['weather', 'time', 'tags_with_separator'], []],
    [
      'named',
      { tool_choice: { type: 'function', function: { name: 'time' } } },
      ['time', '\\"stop_after_first\\":true'],
      ['weather'],
    ],
    ['one at most', { parallel_tool_calls: false }, ['triggered_tags', '\\"stop_after_first\\":true'], []],
    [
      'allowed tools',
      {
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'time' } }] },
        },
      },
      ['triggered_tags', 'time'],
      ['weather'],
    ],
    [
      'strict',
      { tools: [{ type: 'function', function: { name: 'f', parameters, strict: true } }] },
      ['triggered_tags', 'city'],
      [],
    ],
    ['not strict', { parallel_tool_calls: false }, ['triggered_tags', 'weather'], ['city']],
    [
      'a form of its own beside calls',
      { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { const: 'foo' } } } },
      ['\\"or\\"', 'foo', 'weather'],
      [],
    ],
  ])('of %s', async (_, fields, parts, absent) => {
    const guide = await guideOf(fields);
    for (const part of parts) expect(guide).toContain(part);
    for (const part of absent) expect(guide).not.toContain(part);
  });
});

describe('the prompt', () => {
  it('has the tools where the template knows them', async () => {
    const { ask, seen } = server('x');
    await ask({});
    expect(promptOf(seen[0])).toContain('<tools>[{"type":"function","function":{"name":"weather"');
  });

  it('says of tools in the system message where the template knows none', async () => {
    const { ask, seen } = server(call('time', '{}'), '{{ messages }}');
    const answer = await ask({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'time', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'a', content: 'noon' },
      ],
    });
    expect(answer.choices[0]!.message.tool_calls![0]!.function.name).toBe('time');
    const prompt = promptOf(seen[0]);
    expect(prompt).toContain('<system>Be brief.\n\nYou may call functions');
    expect(prompt).toContain('"name":"weather"');
    expect(prompt).toContain('<assistant><tool_call>\n{"name": "time", "arguments": {}}\n</tool_call></>');
    expect(prompt).toContain('<user><tool_response>\nnoon\n</tool_response></>');
  });

  it("trap 12: takes an assistant's message with calls and without content", async () => {
    const { ask } = server('x');
    const made = { id: 'a', type: 'function', function: { name: 'time', arguments: '{}' } };
    for (const content of [{ content: null }, {}]) {
      const answer = await ask({
        messages: [
          ...messages,
          { role: 'assistant', ...content, tool_calls: [made] },
          { role: 'tool', tool_call_id: 'a', content: '1' },
        ],
      });
      expect(answer.error).toBeUndefined();
    }
  });
});

describe('a refusal', () => {
  it.each<[object, string]>([
    [{ tools: undefined, tool_choice: 'required' }, 'tool_choice'],
    [{ tool_choice: { type: 'function', function: { name: 'nobody' } } }, 'tool_choice.function.name'],
    [{ tool_choice: 'sometimes' }, 'tool_choice'],
    [{ tools: [tools[0], tools[0]] }, 'tools[1].function.name'],
    [{ tools: [{ type: 'function', function: { name: 'a b' } }] }, 'tools[0].function.name'],
    [{ tools: [{ type: 'custom', custom: { name: 'x' } }] }, 'tools[0].type'],
    [
      { tools: [{ type: 'function', function: { name: 'f', strict: true, parameters: { not: {} } } }] },
      'tools[0].function.parameters',
    ],
    [{ tool_choice: 'required', ignore_eos: true }, 'tool_choice'],
    [{ functions: [{ name: 'f' }] }, 'functions'],
    [{ function_call: { name: 'f' } }, 'function_call'],
    [{ chat_template_kwargs: { enable_thinking: true } }, 'chat_template_kwargs.enable_thinking'],
    [
      { messages: [{ role: 'assistant', content: null, tool_calls: [{ id: 'a' }] }] },
      'messages[0].tool_calls[0].function',
    ],
  ])('of %j names the field', async (fields, param) => {
    const { error } = await server('x').ask(fields);
    expect(error?.param).toBe(param);
    expect(error.message).toContain(
      param
        .split('.')
        .at(-1)!
        .replace(/\[\d\]$/, ''),
    );
  });
});
