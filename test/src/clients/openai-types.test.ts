import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RequestError } from '../../../callbacks/token-request.js';
import { type Any, readEvents } from '../server/openai/responses/support.js';
import { templatedCodec } from '../support/toy-codec.js';
import { listen, readChunks, say, type ToyServer, toyServer } from '../support/toy-server.js';
import { type Typed, typeProblems } from './type-check.js';

const TEMPLATE = '</think>{% if tools %}<tool_call>{% endif %}';
const TEXT = 'x<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>';
const REASONED = `<think>why</think>${TEXT}`;
const input = 'Hi';
const tools = [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }];

/** Ways in which a response can end, by the script of its engine. */
const ENDS = {
  completed: () => say('Paris'),
  'with reasoning and a call': () => say(REASONED),
  'incomplete by its length': () => [...say('Par').slice(0, -1), { finish: 'length' as const }],
  'incomplete by its time': () => [...say('Par').slice(0, -1), { finish: 'timeout' as const }],
  'failed at once': () => [{ waitMs: 40 }, { error: new RequestError('logits are NaN') }],
  'failed in the middle': () => [{ tokens: [104] }, { waitMs: 5 }, { error: new RequestError('NaN') }],
} as const;

const toys = Object.fromEntries(
  Object.entries(ENDS).map(([name, script]) => [
    name,
    toyServer(script, {
      model: { codec: templatedCodec(TEMPLATE) },
      // A failure before the first event is one of HTTP, unless the stream has gone on for long already.
      eventStream: { keepAliveMs: 10 },
    }),
  ]),
) as Record<keyof typeof ENDS, ToyServer>;

/** Fields that this server sends as null, as OpenAI's own does, although their types only allow leaving them out. */
const SAID_AS_NULL = ['user', 'usage'];
/** In addition to OpenAI's: an object that has nothing else is none of the type. */
const OWN = ['reasoning', 'reasoning_content'];

function problemsOf(module: string, said: readonly Typed[]): string[] {
  const known = (key: string, value: unknown) =>
    OWN.includes(key) && typeof value === 'string'
      ? undefined
      : SAID_AS_NULL.includes(key)
        ? (value ?? undefined)
        : value;
  const values = said.map(({ type, value }) => ({
    type,
    value: JSON.parse(JSON.stringify(value, known)) as unknown,
  }));
  return typeProblems(`openai/resources/${module}`, values);
}

async function eventsOf(toy: ToyServer, fields: object = {}): Promise<Any[]> {
  return readEvents(await toy.post('/v1/responses', { input, tools, stream: true, ...fields }));
}

describe("answers are what the openai package's types say", () => {
  it('responses, their events and their items, however they end', async () => {
    const said: Typed[] = [];
    const lists: Typed[] = [];
    const include = ['message.output_text.logprobs'];
    for (const toy of Object.values(toys)) {
      const events = await eventsOf(toy, { include, top_logprobs: 1, instructions: 'Be kind.' });
      for (const value of events) {
        // The client itself joins the text.
        if (value.response !== undefined) value.response.output_text = '';
        said.push({ type: 'ResponseStreamEvent', value });
      }
      const whole = (await (await toy.post('/v1/responses', { input, tools })).json()) as Any;
      if (whole.object !== 'response') continue;
      said.push({ type: 'Response', value: { ...whole, output_text: '' } });
      const value = await (await toy.get(`/v1/responses/${whole.id}/input_items`)).json();
      lists.push({ type: 'ResponseItemList', value });
    }
    expect(lists.length).toBeGreaterThan(0);
    expect(problemsOf('responses/input-items', lists)).toEqual([]);
    const types = new Set(said.map(({ value }) => (value as Any).type));
    for (const type of [
      'completed',
      'incomplete',
      'failed',
      'reasoning_text.delta',
      'function_call_arguments.done',
    ])
      expect(types).toContain(`response.${type}`);
    expect(problemsOf('responses/responses', said)).toEqual([]);
  });

  it('compactions, tools in namespaces, and conversations', async () => {
    const calls = ['f', 'n__g', 'tool_search'].map(
      (name) => `<tool_call>{"name": "${name}", "arguments": {}}</tool_call>`,
    );
    const toy = toyServer(() => say(`x${calls.join('')}`), {
      model: {
        codec: templatedCodec('{% if tools %}<tool_call>{% endif %}'),
        maxInputLen: 4000,
        maxSeqLen: 5000,
      },
    });
    const json = async (path: string, body: object): Promise<Any> => (await toy.post(path, body)).json();
    const inside = [{ ...tools[0], name: 'g' }];
    const namespace = { type: 'namespace', name: 'n', description: 'd', tools: inside };
    const search = { type: 'tool_search', execution: 'client', description: 'd', parameters: {} };
    const talk = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Ho' },
    ];
    const management = [{ type: 'compaction', compact_threshold: 1 }];
    const events = await eventsOf(toy, {
      ...{ input: talk, tools: [...tools, namespace, search], context_management: management },
    });
    expect(events.at(-1).response.output.map(({ type }: Any) => type)).toEqual([
      ...['compaction', 'message', 'function_call', 'function_call', 'tool_search_call'],
    ]);
    for (const { response } of events) if (response !== undefined) response.output_text = '';
    const compacted = await json('/v1/responses/compact', { input: talk });
    expect(
      problemsOf('responses/responses', [
        ...events.map((value) => ({ type: 'ResponseStreamEvent', value })),
        // OpenAI's type of the output has no messages of users, of which its description says that they are there.
        { type: 'CompactedResponse', value: { ...compacted, output: compacted.output.slice(-1) } },
        { type: 'ResponseInputMessageItem', value: compacted.output[0] },
      ]),
    ).toEqual([]);
    const value = await json('/v1/conversations', { items: talk });
    expect(problemsOf('conversations/conversations', [{ type: 'Conversation', value }])).toEqual([]);
    const listed: Any = await (await toy.get(`/v1/conversations/${value.id}/items`)).json();
    expect(problemsOf('conversations/items', [{ type: 'ConversationItemList', value: listed }])).toEqual([]);
  });

  it('chats, whole and as chunks, and completions', async () => {
    const toy = toys['with reasoning and a call'];
    const chat = {
      messages: [{ role: 'user', content: 'Hi' }],
      tools: [{ type: 'function', function: { name: 'f' } }],
      logprobs: true,
      top_logprobs: 1,
    };
    const said: Typed[] = [
      { type: 'ChatCompletion', value: await (await toy.post('/v1/chat/completions', chat)).json() },
    ];
    const streaming = { ...chat, stream: true, stream_options: { include_usage: true } };
    for (const value of await readChunks(await toy.post('/v1/chat/completions', streaming)))
      said.push({ type: 'ChatCompletionChunk', value });
    expect(problemsOf('chat/completions', said)).toEqual([]);
    const asked = { prompt: 'x', logprobs: 1 };
    const completion: Typed[] = [
      { type: 'Completion', value: await (await toy.post('/v1/completions', asked)).json() },
    ];
    expect(problemsOf('completions', completion)).toEqual([]);
  });

  it('and what they do not say is noticed', () => {
    const event = { type: 'response.failed', sequence_number: 1, response: { id: 'x' } };
    const problems = problemsOf('responses/responses', [{ type: 'ResponseStreamEvent', value: event }]);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain('missing the following properties');
  });
});

describe('the stream helper of the openai package', () => {
  const servers: { close: () => Promise<void> }[] = [];
  const clients = {} as Record<keyof typeof ENDS, OpenAI>;
  beforeAll(async () => {
    for (const [name, toy] of Object.entries(toys)) {
      const server = await listen(toy);
      servers.push(server);
      clients[name as keyof typeof ENDS] = new OpenAI({
        baseURL: `${server.url}/v1`,
        apiKey: 'none',
        maxRetries: 0,
      });
    }
  });
  afterAll(async () => {
    for (const server of servers) await server.close();
  });

  const ask = { model: 'toy', input, tools } as OpenAI.Responses.ResponseCreateParamsStreaming & object;
  const streamed = (name: keyof typeof ENDS) => clients[name].responses.stream(ask);

  it.each([
    'completed',
    'with reasoning and a call',
    'incomplete by its length',
    'incomplete by its time',
  ] as const)('gathers from the events of a response that is %s what the last one has', async (name) => {
    const stream = streamed(name);
    const numbers: number[] = [];
    let last: Any;
    for await (const event of stream) {
      numbers.push(event.sequence_number);
      last = event;
    }
    expect(numbers).toEqual(numbers.map((_, index) => index));
    const { output_text: _, ...final } = (await stream.finalResponse()) as Any;
    expect(final).toMatchObject({ status: name.split(' ')[0] === 'incomplete' ? 'incomplete' : 'completed' });
    expect(final.usage.total_tokens).toBe(last.response.usage.total_tokens);
    expect(final.output.map(({ id, status }: Any) => [id, status])).toEqual(
      last.response.output.map(({ id, status }: Any) => [id, status]),
    );
  });

  it.each(['failed at once', 'failed in the middle'] as const)(
    'throws where a response has %s',
    async (name) => {
      const expected = {
        message: expect.stringContaining('NaN'),
        code: 'engine_error',
        type: 'server_error',
      };
      await expect(streamed(name).finalResponse()).rejects.toMatchObject(expected);
      const events: string[] = [];
      const read = async () => {
        for await (const { type } of await clients[name].responses.create({ ...ask, stream: true }))
          events.push(type);
      };
      const error = await read().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(OpenAI.APIError);
      expect(error).toMatchObject(expected);
      expect(events.slice(0, 2)).toEqual(['response.created', 'response.in_progress']);
    },
  );

  it('ends where a response is cancelled, with what there is', async () => {
    const toy = toyServer(() => [{ tokens: [104] }, { waitMs: 10_000 }, { finish: 'stop' }], {
      model: { maxInputLen: 2000, maxSeqLen: 3000 },
    });
    const server = await listen(toy);
    servers.push(server);
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const stream = client.responses.stream(ask);
    const types: string[] = [];
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === 'response.created') {
        const cancelled = await client.responses.cancel(event.response.id);
        expect(cancelled).toMatchObject({ status: 'cancelled', output: [{ content: [{ text: 'h' }] }] });
        const value = { ...cancelled, output_text: 'h' };
        expect(problemsOf('responses/responses', [{ type: 'Response', value }])).toEqual([]);
      }
    }
    expect(types.at(-1)).toBe('response.incomplete');
    expect(await stream.finalResponse()).toMatchObject({ status: 'cancelled', output_text: 'h' });
    expect(toy.engine.active).toBe(0);
  });
});
