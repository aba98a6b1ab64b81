import { describe, expect, it } from 'vitest';
import { templatedCodec } from '../../../support/toy-codec.js';
import { say, toyServer } from '../../../support/toy-server.js';
import { type Any, create, PATH, promptText, readEvents, refusal } from './support.js';

const HERMES = '{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}';
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = [
  { type: 'function', name: 'weather', description: 'Of a city.', parameters },
  { type: 'function', name: 'time' },
];
const call = (name: string, args: string) =>
  `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;
const input = 'Rain?';

function server(text: string, template = HERMES) {
  const codec = templatedCodec(template);
  return toyServer(() => say(text), { model: { codec, maxInputLen: 4000, maxSeqLen: 5000 } });
}

describe('functions of a response', () => {
  const text = `Let me look.\n${call('weather', '{"city": "Zürich"}')}\n${call('time', '{}')}`;

  it('are called by items of their own', async () => {
    const toy = server(text);
    const response = await create(toy, { input, tools });
    const called = (name: string, args: string) => ({
      type: 'function_call',
      id: expect.stringMatching(/^fc_/),
      call_id: expect.stringMatching(/^call_/),
      status: 'completed',
      name,
      arguments: args,
    });
    expect(response.output).toMatchObject([
      { type: 'message', content: [{ text: 'Let me look.' }] },
      called('weather', '{"city": "Zürich"}'),
      called('time', '{}'),
    ]);
    expect(response.status).toBe('completed');
    expect(response.tools[0]).toEqual({ ...tools[0], strict: false });
    expect(promptText(toy)).toContain('"name":"weather"');
  });

  const strictly = { ...parameters, additionalProperties: false };
  const nested = (inner: object) => ({ ...strictly, properties: { city: inner } });
  it.each([
    ['a schema that strict asks for', { parameters: strictly }, true],
    [
      'one with objects in lists and alternatives',
      { parameters: nested({ anyOf: [{ type: 'array', items: strictly }] }) },
      true,
    ],
    ['one that allows more', { parameters }, false],
    ['one with a member that may be left out', { parameters: { ...strictly, required: [] } }, false],
    ['one that allows more further in', { parameters: nested(parameters) }, false],
    ['one with keywords of which strict knows nothing', { parameters: nested({ not: {} }) }, false],
    ['none', {}, false],
    ['any, where the request says no', { parameters: strictly, strict: false }, false],
    ['any, where the request says yes', { parameters, strict: true }, true],
  ])('are strict or not, as the request says or its schema allows: %s', async (_, more, strict) => {
    const toy = server('Hi');
    const response = await create(toy, { input, tools: [{ type: 'function', name: 'f', ...more }] });
    expect(response.tools[0].strict).toBe(strict);
    const { guide } = toy.engine.requests.at(-1)!;
    expect(guide !== undefined && JSON.stringify(guide).includes('city')).toBe(strict);
  });

  it("are streamed with OpenAI's events", async () => {
    const toy = server(call('weather', '{"city": "Ur"}'));
    const events = await readEvents(await toy.post(PATH, { input, tools, stream: true }));
    const types = events.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]);
    expect(types).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.function_call_arguments.delta',
      'response.function_call_arguments.done',
      'response.output_item.done',
      'response.completed',
    ]);
    const added = events.find(({ type }) => type === 'response.output_item.added');
    expect(added.item).toMatchObject({
      type: 'function_call',
      name: 'weather',
      arguments: '',
      status: 'in_progress',
    });
    const deltas = events.filter(({ type }) => type === 'response.function_call_arguments.delta');
    expect(deltas.length).toBeGreaterThan(3);
    expect(deltas.map(({ delta }) => delta).join('')).toBe('{"city": "Ur"}');
    const done = events.find(({ type }) => type === 'response.function_call_arguments.done');
    expect(done).toMatchObject({
      name: 'weather',
      arguments: '{"city": "Ur"}',
      item_id: added.item.id,
      output_index: 0,
    });
    expect(events.at(-1).response.output).toEqual([
      { ...added.item, status: 'completed', arguments: done.arguments },
    ]);
  });

  it('get their outputs in the next turn', async () => {
    const codec = templatedCodec(HERMES);
    const asked: (readonly unknown[])[] = [];
    const noting: typeof codec = {
      ...codec,
      encodeChat: (messages, options) => {
        asked.push(messages);
        return codec.encodeChat(messages, options);
      },
    };
    const toy = toyServer(() => say(text), { model: { codec: noting, maxInputLen: 4000, maxSeqLen: 5000 } });
    const first = await create(toy, { input, tools });
    const calls = first.output.filter(({ type }: Any) => type === 'function_call');
    const outputs = calls.map(({ call_id }: Any, i: number) => ({
      type: 'function_call_output',
      call_id,
      output: i === 0 ? 'wet' : [{ type: 'input_text', text: 'noon' }],
    }));
    await create(toy, { previous_response_id: first.id, input: outputs, tools });
    const turns = asked.at(-1)!;
    expect(turns).toMatchObject([
      { role: 'user', content: input },
      {
        role: 'assistant',
        content: 'Let me look.',
        tool_calls: [
          { id: calls[0].call_id, type: 'function', function: { name: 'weather' } },
          { id: calls[1].call_id, type: 'function', function: { name: 'time', arguments: '{}' } },
        ],
      },
      { role: 'tool', content: 'wet', tool_call_id: calls[0].call_id },
      { role: 'tool', content: 'noon', tool_call_id: calls[1].call_id },
    ]);
    // The same without the server's memory.
    await create(toy, {
      input: [{ role: 'user', content: input }, ...first.output, ...outputs],
      tools,
      store: false,
    });
    expect(asked.at(-1)).toEqual(turns);
  });

  it('are chosen as in chat', async () => {
    const toy = server(call('time', '{}'));
    await create(toy, { input, tools, tool_choice: 'required' });
    expect(toy.engine.requests.at(-1)!.guide).toBeDefined();
    const named = { type: 'function', name: 'time' };
    expect((await create(toy, { input, tools, tool_choice: named })).tool_choice).toEqual(named);
    expect(toy.engine.requests.at(-1)!.guide).toBeDefined();
    const allowed = { type: 'allowed_tools', mode: 'required', tools: [named] };
    await create(toy, { input, tools, tool_choice: allowed });
    await create(toy, { input, tools, tool_choice: 'none' });
    expect(toy.engine.requests.at(-1)!.guide).toBeUndefined();
    expect(promptText(toy)).not.toContain('weather');
  });

  it.each<[string, object, string]>([
    ['an unknown name', { tools, tool_choice: { type: 'function', name: 'none' } }, 'tool_choice.name'],
    ['a choice without tools', { tool_choice: 'required' }, 'tool_choice'],
    ['two of a name', { tools: [tools[0], tools[0]] }, 'tools[1].name'],
    ['a name with spaces', { tools: [{ type: 'function', name: 'a b' }] }, 'tools[0].name'],
    [
      'a schema beyond grammars',
      { tools: [{ type: 'function', name: 'f', strict: true, parameters: { not: {} } }] },
      'tools[0].parameters',
    ],
  ])('%s is refused in the words of this route', async (_, fields, param) => {
    const error = await refusal(server('x'), { input, ...fields });
    expect(error).toMatchObject({ status: 400, param });
    expect(error.message).not.toMatch(/function\.(name|parameters)/);
  });
});

describe('reasoning of a response', () => {
  const THINKS = '{{ messages }}{{ enable_thinking }}<think></think>';

  it('is an item before the message, with its events', async () => {
    const toy = server('<think>Hm.</think>\n\nYes.', THINKS);
    const response = await create(toy, { input });
    expect(response.output).toMatchObject([
      {
        type: 'reasoning',
        summary: [],
        status: 'completed',
        content: [{ type: 'reasoning_text', text: 'Hm.' }],
      },
      { type: 'message', content: [{ text: 'Yes.' }] },
    ]);
    const events = await readEvents(await toy.post(PATH, { input, stream: true }));
    const types = events.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]);
    const item = (delta: string) => [
      'response.output_item.added',
      'response.content_part.added',
      `response.${delta}.delta`,
      `response.${delta}.done`,
      'response.content_part.done',
      'response.output_item.done',
    ];
    expect(types).toEqual([
      'response.created',
      'response.in_progress',
      ...item('reasoning_text'),
      ...item('output_text'),
      'response.completed',
    ]);
    expect(response.usage.output_tokens_details.reasoning_tokens).toBeGreaterThan(0);
  });
});
