import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { templatedCodec } from '../../support/toy-codec.js';
import { listen, readChunks, say, type ToyServer, toyServer } from '../../support/toy-server.js';

const path = '/v1/chat/completions';
const messages = [{ role: 'user' as const, content: 'Hi' }];
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const functions = [{ name: 'weather', description: 'Of a city.', parameters }, { name: 'time' }];
const TEMPLATE = '{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}';
const CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich"}}\n</tool_call>';

const server = (text: string): ToyServer =>
  toyServer(() => say(text), {
    model: { codec: templatedCodec(TEMPLATE), maxInputLen: 4000, maxSeqLen: 5000 },
  });

interface Choice {
  message: object;
  delta: { function_call?: { name?: string; arguments: string }; tool_calls?: unknown };
  finish_reason: string | null;
}

async function ask(toy: ToyServer, fields: object) {
  const response = await toy.post(path, { messages, ...fields });
  const { choices, error } = (await response.json()) as {
    choices: Choice[];
    error?: { param: string; message: string };
  };
  return { status: response.status, choice: choices?.[0], error };
}

describe('functions and function_call, which tools and tool_choice were before', () => {
  it('a call is the function_call of the message', async () => {
    const toy = server(`Let me look.\n${CALL}`);
    const { choice } = await ask(toy, { functions });
    expect(choice!.message).toEqual({
      role: 'assistant',
      content: 'Let me look.',
      refusal: null,
      function_call: { name: 'weather', arguments: '{"city": "Zürich"}' },
    });
    expect(choice!.finish_reason).toBe('function_call');
    const [request] = toy.engine.requests;
    const prompt = Buffer.from(Array.from(request!.promptTokens).filter((token) => token < 256)).toString();
    expect(prompt).toContain('"name":"weather","description":"Of a city."');
    // There is room for one call.
    expect(request!.guide?.guide).toContain('"stop_after_first":true');
  });

  it('streams its name once, and its arguments as they come', async () => {
    const response = await server(CALL).post(path, { messages, functions, stream: true });
    const choices = (await readChunks<{ choices: Choice[] }>(response)).flatMap((chunk) => chunk.choices);
    const deltas = choices.flatMap(({ delta }) => delta.function_call ?? []);
    expect(deltas[0]).toEqual({ name: 'weather', arguments: '' });
    expect(deltas.slice(1).every((delta) => Object.keys(delta).join() === 'arguments')).toBe(true);
    expect(deltas.length).toBeGreaterThan(10);
    expect(deltas.map((delta) => delta.arguments).join('')).toBe('{"city": "Zürich"}');
    expect(choices.some(({ delta }) => delta.tool_calls !== undefined)).toBe(false);
    expect(choices.at(-1)!.finish_reason).toBe('function_call');
  });

  it('one that was named has to be called, and none of them with none', async () => {
    const toy = server(CALL);
    const { choice } = await ask(toy, { functions, function_call: { name: 'weather' } });
    expect(choice).toMatchObject({ message: { function_call: { name: 'weather' } }, finish_reason: 'stop' });
    expect(toy.engine.requests[0]!.guide?.guide).not.toContain('"time"');
    expect((await ask(toy, { functions, function_call: 'none' })).choice).toMatchObject({
      message: { content: CALL },
      finish_reason: 'stop',
    });
    // Clients that have no functions send them like this.
    for (const function_call of ['auto', 'none', null])
      expect((await ask(toy, { functions: [], function_call })).status).toBe(200);
  });

  it('calls and results of earlier turns reach the template as those of tools do', async () => {
    const toy = server('Sunny.');
    const call = { name: 'weather', arguments: '{"city": "Rome"}' };
    await ask(toy, {
      functions,
      messages: [
        ...messages,
        { role: 'assistant', content: null, function_call: call },
        { role: 'function', name: 'weather', content: 'Sun.' },
      ],
    });
    const made = [{ id: 'a', type: 'function', function: call }];
    await ask(toy, {
      tools: functions.map((one) => ({ type: 'function', function: one })),
      messages: [
        ...messages,
        { role: 'assistant', content: null, tool_calls: made },
        { role: 'tool', tool_call_id: 'a', content: 'Sun.' },
      ],
    });
    const [older, newer] = toy.engine.requests;
    expect(older!.promptTokens).toEqual(newer!.promptTokens);
  });

  it.each<[object, string]>([
    [{ functions: [{ name: 'a b' }] }, 'functions[0].name'],
    [{ functions: [{}] }, 'functions[0].name'],
    [{ functions: [{ name: 'f' }, { name: 'f' }] }, 'functions[1].name'],
    [{ functions, function_call: { name: 'g' } }, 'function_call.name'],
    [{ functions, function_call: 'required' }, 'function_call'],
    [{ function_call: { name: 'weather' } }, 'function_call'],
    [{ functions, tool_choice: 'auto' }, 'functions'],
    [{ functions, tools: [{ type: 'function', function: { name: 'f' } }] }, 'functions'],
    [{ functions, function_call: { name: 'time' }, ignore_eos: true }, 'function_call'],
  ])('a refusal of %j names the field', async (fields, param) => {
    const { status, error } = await ask(server('x'), fields);
    expect(status).toBe(400);
    expect(error!.param).toBe(param);
    expect(error!.message).not.toMatch(/tools\[|tool_choice\.|^'tool_choice' asks/);
  });
});

describe('the openai package', () => {
  let close: () => Promise<void>;
  let client: OpenAI;
  beforeAll(async () => {
    const listening = await listen(server(CALL));
    close = listening.close;
    client = new OpenAI({ baseURL: `${listening.url}/v1`, apiKey: 'none', maxRetries: 0 });
  });
  afterAll(() => close());

  it('gathers the call of a stream', async () => {
    const body = { model: 'toy', messages, functions };
    const whole = await client.chat.completions.create(body);
    const streamed = await client.chat.completions.stream(body).finalChatCompletion();
    const call = { name: 'weather', arguments: '{"city": "Zürich"}' };
    for (const { choices } of [whole, streamed]) {
      expect(choices[0]!.finish_reason).toBe('function_call');
      expect(choices[0]!.message.function_call).toMatchObject(call);
    }
  });
});
