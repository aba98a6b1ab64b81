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

describe('custom tools of a response', () => {
  const patch = { type: 'custom', name: 'apply_patch', description: 'Changes files.' };
  const called = call('apply_patch', JSON.stringify({ input: '*** Begin\n"Zürich"' }));

  it('are called with a text', async () => {
    const toy = server(called);
    const response = await create(toy, { input, tools: [patch, ...tools] });
    expect(response.output).toEqual([
      {
        type: 'custom_tool_call',
        id: expect.stringMatching(/^ctc_/),
        call_id: expect.stringMatching(/^call_/),
        status: 'completed',
        name: 'apply_patch',
        input: '*** Begin\n"Zürich"',
      },
    ]);
    expect(response.tools[0]).toEqual({ ...patch, format: { type: 'text' } });
    expect(promptText(toy)).toContain('Changes files.');
  });

  it('are streamed', async () => {
    const events = await readEvents(await server(called).post(PATH, { input, tools: [patch], stream: true }));
    const types = events.map(({ type }) => type);
    expect(types.filter((type, i) => type !== types[i - 1])).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.custom_tool_call_input.delta',
      'response.custom_tool_call_input.done',
      'response.output_item.done',
      'response.completed',
    ]);
    const deltas = events.filter(({ type }) => type === 'response.custom_tool_call_input.delta');
    // A text comes as the model writes it: here a character at a time.
    expect(deltas.length).toBe('*** Begin\n"Zürich"'.length);
    expect(deltas.map(({ delta }) => delta).join('')).toBe('*** Begin\n"Zürich"');
    expect(events.at(-3)).toMatchObject({ input: '*** Begin\n"Zürich"', item_id: deltas[0].item_id });
    expect(events.at(-2).item.input).toBe('*** Begin\n"Zürich"');
  });

  it('that are broken off keep what has come', async () => {
    const cut = called.slice(0, called.indexOf('rich'));
    const codec = templatedCodec(HERMES);
    const model = { codec, maxInputLen: 4000, maxSeqLen: 5000 };
    const format = { type: 'grammar', syntax: 'regex', definition: '.*' };
    for (const tool of [patch, { ...patch, format }]) {
      const steps = say(cut).slice(0, -1);
      const toy = toyServer(() => [...steps, { waitMs: 10_000 }, { finish: 'stop' }], { model });
      const { id } = await create(toy, { input, tools: [tool], background: true });
      const shown = async () => ((await (await toy.get(`${PATH}/${id}`)).json()) as Any).output[0];
      await expect.poll(async () => (await shown())?.input).toBe('*** Begin\n"Zü');
      await toy.post(`${PATH}/${id}/cancel`, {});
      await expect.poll(async () => (await shown()).status).toBe('incomplete');
      expect((await shown()).input).toBe('*** Begin\n"Zü');
    }
  });

  it.each(['{"input":"', '{ "input": "', '{\n  "input" : "'])(
    'that are cut in front of their text have none: %j',
    async (begin) => {
      const head = called.slice(0, called.indexOf('{"input"'));
      const codec = templatedCodec(HERMES);
      // In front of the first quote it is not certain yet that this is a call.
      for (let length = begin.indexOf('"') + 1; length <= begin.length; length++) {
        const steps = say(head + begin.slice(0, length)).slice(0, -1);
        const toy = toyServer(() => [...steps, { finish: 'length' }], {
          model: { codec, maxInputLen: 4000, maxSeqLen: 5000 },
        });
        const body = { input, tools: [patch], stream: true };
        const events = await readEvents(await toy.post(PATH, body));
        expect(events.filter(({ type }) => type.endsWith('input.delta'))).toEqual([]);
        const { status, output } = events.at(-1).response;
        expect([status, output[0].type, output[0].input]).toEqual(['incomplete', 'custom_tool_call', '']);
      }
    },
  );

  it('get what they gave in the next turn', async () => {
    const toy = server(called);
    const first = await create(toy, { input, tools: [patch] });
    const output = { type: 'custom_tool_call_output', call_id: first.output[0].call_id, output: 'Done.' };
    await create(toy, { previous_response_id: first.id, input: [output], tools: [patch] });
    const prompt = promptText(toy);
    await create(toy, { input: [{ role: 'user', content: input }, ...first.output, output], tools: [patch] });
    expect(promptText(toy)).toBe(prompt);
    expect(prompt).toContain('<tool>Done.');
  });

  it('follow a regex, and are told a grammar', async () => {
    const toy = server(called);
    const format = (syntax: string, definition: string) => ({ type: 'grammar', syntax, definition });
    await create(toy, { input, tools: [{ ...patch, format: format('regex', 'a{2,9}') }] });
    expect(JSON.stringify(toy.engine.requests.at(-1)!.guide)).toContain('^(?:a{2,9})$');
    await create(toy, { input, tools: [{ ...patch, format: format('lark', 'start: "a"') }] });
    expect(toy.engine.requests.at(-1)!.guide).toBeUndefined();
    expect(promptText(toy)).toContain('start: ');
    await create(toy, { input, tools: [patch], tool_choice: { type: 'custom', name: 'apply_patch' } });
    expect(toy.engine.requests.at(-1)!.guide).toBeDefined();
  });

  it('with arguments that are none keep them', async () => {
    const response = await create(server(call('apply_patch', '{"text": 1}')), { input, tools: [patch] });
    expect(response.output[0].input).toBe('{"text": 1}');
  });
});

describe('tools in namespaces', () => {
  const shop = (...inside: object[]) => ({
    type: 'namespace',
    name: 'mcp__shop',
    description: 'Orders.',
    tools: inside,
  });
  const lookup = { type: 'function', name: 'lookup', description: 'Looks up.', parameters };
  const note = { type: 'custom', name: 'note' };
  const called = call('mcp__shop__lookup', '{"city": "Ur"}') + call('mcp__shop__note', '{"input": "a"}');

  it('are told by one name, and called by two', async () => {
    const toy = server(called);
    const response = await create(toy, { input, tools: [shop(lookup, note), tools[1]] });
    expect(response.output).toMatchObject([
      { type: 'function_call', name: 'lookup', namespace: 'mcp__shop', arguments: '{"city": "Ur"}' },
      { type: 'custom_tool_call', name: 'note', namespace: 'mcp__shop', input: 'a' },
    ]);
    const prompt = promptText(toy);
    for (const told of ['"name":"mcp__shop__lookup"', 'Looks up.\\n\\nOrders.', '"name":"mcp__shop__note"'])
      expect(prompt).toContain(told);
    expect(response.tools[0]).toEqual({
      ...shop({ ...lookup, strict: false }, { ...note, description: null, format: { type: 'text' } }),
    });
  });

  it('are streamed with both names from the beginning', async () => {
    const toy = server(called);
    const events = await readEvents(
      await toy.post(PATH, { input, tools: [shop(lookup, note)], stream: true }),
    );
    const added = events.filter(({ type }) => type === 'response.output_item.added');
    expect(added.map(({ item }) => [item.namespace, item.name])).toEqual([
      ['mcp__shop', 'lookup'],
      ['mcp__shop', 'note'],
    ]);
  });

  it('are known again in the next turn', async () => {
    const codec = templatedCodec(HERMES);
    const asked: (readonly Any[])[] = [];
    const noting: typeof codec = {
      ...codec,
      encodeChat: (messages, options) => {
        asked.push(messages);
        return codec.encodeChat(messages, options);
      },
    };
    const toy = toyServer(() => say(called), {
      model: { codec: noting, maxInputLen: 4000, maxSeqLen: 5000 },
    });
    const first = await create(toy, { input, tools: [shop(lookup, note)] });
    await create(toy, { input: [...first.output, { role: 'user', content: 'And?' }], tools: [shop(lookup)] });
    expect(asked.at(-1)![0].tool_calls.map((one: Any) => one.function.name)).toEqual([
      'mcp__shop__lookup',
      'mcp__shop__note',
    ]);
  });

  it('are chosen by either name', async () => {
    for (const name of ['lookup', 'mcp__shop__lookup']) {
      const toy = server(called);
      await create(toy, { input, tools: [shop(lookup, note)], tool_choice: { type: 'function', name } });
      expect(JSON.stringify(toy.engine.requests.at(-1)!.guide)).toContain('mcp__shop__lookup');
    }
    // A name that two namespaces have means neither.
    const other = { ...shop(lookup), name: 'other' };
    const body = { input, tools: [shop(lookup), other], tool_choice: { type: 'function', name: 'lookup' } };
    expect(await refusal(server('x'), body)).toMatchObject({ param: 'tool_choice.name' });
  });

  it.each<[string, object[], string]>([
    ['two of a name', [shop(lookup, lookup)], 'tools[0].tools[1].name'],
    [
      'one of the name of another',
      [{ ...lookup, name: 'mcp__shop__lookup' }, shop(lookup)],
      'tools[1].tools[0].name',
    ],
    ['a name with spaces', [shop({ ...lookup, name: 'a b' })], 'tools[0].tools[0].name'],
    ['a tool of another type', [shop({ type: 'web_search' })], 'tools[0].tools[0].type'],
    ['a namespace without tools', [{ type: 'namespace', name: 'a' }], 'tools[0].tools'],
    [
      'a schema beyond grammars',
      [shop({ ...lookup, strict: true, parameters: { not: {} } })],
      'tools[0].tools[0].parameters',
    ],
    [
      'more tools than are taken',
      [
        shop(...Array.from({ length: 300 }, (_, i) => ({ ...lookup, name: `f${i}` }))),
        { ...shop(...Array.from({ length: 300 }, (_, i) => ({ ...lookup, name: `f${i}` }))), name: 'b' },
      ],
      'tools',
    ],
    ['a tool for programs', [{ ...lookup, allowed_callers: ['programmatic'] }], 'tools[0].allowed_callers'],
  ])('%s is refused by its place', async (_, list, param) => {
    expect(await refusal(server('x'), { input, tools: list })).toMatchObject({ status: 400, param });
  });
});

describe('a search for tools by the client', () => {
  const search = { type: 'tool_search', execution: 'client', description: 'Finds tools.', parameters };
  const found = { type: 'namespace', name: 'crm', tools: [{ type: 'function', name: 'lookup', parameters }] };

  it('is called by an item of its own, and the tools that it finds are callable', async () => {
    const toy = server(call('tool_search', '{"city": "orders"}'));
    const first = await create(toy, { input, tools: [search] });
    expect(first.output).toEqual([
      {
        type: 'tool_search_call',
        id: expect.stringMatching(/^tsc_/),
        call_id: expect.stringMatching(/^call_/),
        status: 'completed',
        execution: 'client',
        arguments: { city: 'orders' },
      },
    ]);
    expect(first.tools).toEqual([search]);
    const output = {
      type: 'tool_search_output',
      call_id: first.output[0].call_id,
      execution: 'client',
      tools: [found],
    };
    const next = server(call('crm__lookup', '{}'));
    for (const body of [
      { input: [...first.output, output] },
      // One that is known already adds nothing.
      { input: [...first.output, output, output] },
      {
        input: [
          { type: 'additional_tools', role: 'developer', tools: [found] },
          { role: 'user', content: 'Hi' },
        ],
      },
    ]) {
      const response = await create(next, { ...body, tools: [search] });
      expect(response.output).toMatchObject([{ type: 'function_call', name: 'lookup', namespace: 'crm' }]);
      expect(promptText(next).match(/"name":"crm__lookup"/g)).toHaveLength(1);
    }
    expect(promptText(next, 0)).toContain('<tool>These tools can be called now: crm__lookup');
    // They stay where the server keeps the conversation.
    const stored = await create(next, { input: [output], tools: [search] });
    await create(next, { previous_response_id: stored.id, input: 'More', tools: [search] });
    expect(promptText(next)).toContain('"name":"crm__lookup"');
  });

  it('that is broken off keeps the text of its arguments', async () => {
    const cut = say('<tool_call>\n{"name": "tool_search", "arguments": {"query": "cr').slice(0, -1);
    const model = { codec: templatedCodec(HERMES), maxInputLen: 4000, maxSeqLen: 5000 };
    const toy = toyServer(() => [...cut, { finish: 'length' }], { model });
    const { output } = await create(toy, { input, tools: [search] });
    expect(output[0]).toMatchObject({
      ...{ type: 'tool_search_call', status: 'incomplete', arguments: { query: '{"query": "cr' } },
    });
  });
});

describe('tools of types that are not known', () => {
  const others = [{ type: 'web_search' }, { type: 'tool_search' }];

  it('are left out, and told', async () => {
    const toy = server('Hi');
    const response = await toy.post(PATH, { input, tools: [...others, tools[1]] });
    expect(response.headers.get('x-skein-warning')).toBe(
      "Tools of the types 'web_search', 'tool_search' are not known here and were left out.",
    );
    expect(((await response.json()) as Any).tools).toMatchObject([{ name: 'time' }]);
    expect(promptText(toy)).not.toContain('web_search');
  });

  it('still count where another tool is refused', async () => {
    const error = await refusal(server('x'), { input, tools: [...others, tools[1], tools[1]] });
    expect(error.param).toBe('tools[3].name');
  });
});

describe('items of tools that are not known', () => {
  const found = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search' } };
  const listed = { type: 'computer_call', call_id: 'c' };
  const said = { type: 'message', role: 'assistant', content: 'Paris' };
  const warning =
    "Items of the types 'computer_call', 'web_search_call' are not known here and were left out.";

  it('are stored as they came, and are not part of the prompt', async () => {
    const toy = server('Hi');
    const items = [{ role: 'user', content: 'Where?' }, listed, found, said];
    const response = await toy.post(PATH, { input: [...items, { role: 'user', content: input }] });
    expect(response.headers.get('x-skein-warning')).toBe(warning);
    const { id } = (await response.json()) as Any;
    const prompt = promptText(toy);
    const kept = (await (await toy.get(`${PATH}/${id}/input_items?order=asc`)).json()) as Any;
    expect(kept.data.slice(1, 3)).toEqual([{ ...listed, id: expect.stringMatching(/^item_/) }, found]);
    await create(toy, { input: [items[0], said, { role: 'user', content: input }] });
    expect(promptText(toy)).toBe(prompt);
    const next = await toy.post(PATH, { previous_response_id: id, input: 'And now?' });
    expect(next.headers.get('x-skein-warning')).toBe(warning);
    const conversation = await toy.post('/v1/conversations', { items });
    const { id: conversationId } = (await conversation.json()) as Any;
    await create(toy, { conversation: conversationId, input });
    expect(promptText(toy)).toBe(prompt);
  });

  it('are refused where their type is no tool of OpenAI', async () => {
    const error = await refusal(server('x'), { input: [{ type: 'web_serach_call' }] });
    expect(error).toMatchObject({ status: 400, param: 'input[0].type' });
    expect(error.message).toContain('or that of a hosted tool');
  });
});

describe('tokens of a response are counted', () => {
  it('as its prompt has them', async () => {
    const toy = server('Hi');
    const count = async (fields: object) =>
      ((await (await toy.post(`${PATH}/input_tokens`, { input, ...fields })).json()) as Any).input_tokens;
    const { id, usage } = await create(toy, { input, tools, instructions: 'Be kind.' });
    expect(await count({ tools, instructions: 'Be kind.' })).toBe(usage.input_tokens);
    expect(await count({ previous_response_id: id })).toBeGreaterThan(await count({}));
    expect(await count({ input: 'x'.repeat(9000) })).toBeGreaterThan(9000);
  });
});

describe('reasoning of a response', () => {
  const THINKS = '{{ messages }}{{ enable_thinking }}<think></think>';

  it('comes in a form to send back, where it is asked for', async () => {
    const toy = server('<think>Hm. ö</think>\n\nYes.', THINKS);
    const include = ['reasoning.encrypted_content'];
    const ask = { input, include, reasoning: { summary: 'auto' }, store: false, client_metadata: { a: 1 } };
    const { output } = await create(toy, ask);
    const { content: _, ...reasoning } = output[0];
    expect(reasoning.encrypted_content).toEqual(expect.any(String));
    const rest = [output[1], { role: 'user', content: 'Why?' }];
    await create(toy, { input: [output[0], ...rest] });
    const whole = toy.engine.requests.at(-1)!.promptTokens;
    await create(toy, { input: [reasoning, ...rest] });
    expect(toy.engine.requests.at(-1)!.promptTokens).toEqual(whole);
    await create(toy, { input: [{ ...reasoning, encrypted_content: 'gAAAA' }, ...rest] });
  });

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
