import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ChatMessage } from '../../../../models/chat-template.js';
import { type ChatAsk, planChat } from '../../../../src/generation/chat-plan.js';
import type { FunctionTool } from '../../../../src/generation/tools/types.js';
import { promptText, renderedCodec } from '../../support/rendered-codec.js';
import { toyModel } from '../../support/toy-server.js';

// Other forms are tried for two seconds: the clock stands, whatever a busy machine takes for them.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const GENERATION = '{% if add_generation_prompt %}A:{% endif %}';

/** Templates of our own with the rules of published ones. */
const TEMPLATES = {
  /** Knows no role system, wants roles to take turns, and no functions. */
  turns: `{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- for message in messages %}
{%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate') }}{% endif %}
{%- if message.role == 'assistant' %}A:{{ message.content | trim }};{% else %}U:{{ message.content | trim }};{% endif %}
{%- endfor %}${GENERATION}`,
  /** Wants the system's text to be the first message. */
  first: `{%- for message in messages %}
{%- if message.role == 'system' and not loop.first %}{{ raise_exception('System message must be at the beginning.') }}{% endif %}
{{- message.role[0] | upper + ':' + message.content + ';' }}
{%- endfor %}${GENERATION}{# tools <tool_call> #}`,
  /** Wants turns after an optional text of the system, and ids of calls of nine characters. */
  ids: `{%- if messages[0].role == 'system' %}{% set rest = messages[1:] %}S:{{ messages[0].content }};{% else %}{% set rest = messages %}{% endif %}
{%- set ns = namespace(at=0) %}
{%- for message in rest %}{% if message.role == 'user' or (message.role == 'assistant' and message.tool_calls is not defined) %}
{%- if (message.role == 'user') != (ns.at % 2 == 0) %}{{ raise_exception('roles must alternate user/assistant') }}{% endif %}{% set ns.at = ns.at + 1 %}{% endif %}{% endfor %}
{%- if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}{% endif %}
{%- for message in rest %}
{%- if message.role == 'user' %}U:{{ message.content }};
{%- elif message.role == 'tool' %}{% if message.tool_call_id | length != 9 %}{{ raise_exception('Tool call IDs should have length 9!') }}{% endif %}T{{ message.tool_call_id }}:{{ message.content }};
{%- elif message.tool_calls is defined %}[TOOL_CALLS]{% for call in message.tool_calls %}{% if call.id | length != 9 %}{{ raise_exception('Tool call IDs should have length 9!') }}{% endif %}{{ call.id }}={{ call.function.arguments | tojson }},{% endfor %};
{%- else %}A:{{ message.content }};{% endif %}
{%- endfor %}`,
  /** Names a wrong id before a text of the system that is too late. */
  late: `{%- for message in messages %}
{%- if message.role == 'user' %}{% if tools %}[AVAILABLE_TOOLS]{% endif %}U:{{ message.content }};
{%- elif message.role == 'tool' %}T{{ message.tool_call_id }}:{{ message.content }};
{%- elif message.tool_calls is defined %}{% if message.tool_calls[0].id | length != 9 %}{{ raise_exception('Tool call IDs should have length 9!') }}{% endif %}C{{ message.tool_calls[0].id }};
{%- elif message.role == 'system' and not loop.first %}{{ raise_exception('System message must be at the beginning.') }}
{%- else %}{{ message.role[0] | upper }}:{{ message.content }};{% endif %}
{%- endfor %}{# [TOOL_CALLS] #}`,
  /** Takes one call in a message. */
  single: `{{ bos_token }}<|start_header_id|>{% if tools %}{% for tool in tools %}{{ {"name": tool.function.name, "parameters": tool.function.parameters} | tojson }}{% endfor %}{% endif %}
{%- for message in messages %}
{%- if message.tool_calls is defined %}{% if message.tool_calls | length != 1 %}{{ raise_exception('This model only supports single tool-calls at once!') }}{% endif %}C:{{ message.tool_calls[0].function.arguments | tojson }};
{%- else %}{{ message.role[0] | upper }}:{{ message.content }};{% endif %}
{%- endfor %}${GENERATION}`,
  /** Adds texts of schemas to each other. */
  adds: `{% if tools %}{% for tool in tools %}<function={{ tool.function.name }}>{% for name, param in tool.function.parameters.properties.items() %}{{ '<' + name + ':' + param.type + ':' + param.description + '>' }}{% endfor %}{% endfor %}{% endif %}
{%- for message in messages %}{{ message.role[0] | upper }}:{{ message.content }};{% endfor %}${GENERATION}{# <tool_call> #}`,
  /** Refuses all functions. */
  none: `{% if tools %}{{ raise_exception('No tools, please') }}{% endif %}
{%- for message in messages %}{% if message.role not in ['system', 'user', 'assistant'] or message.tool_calls %}{{ raise_exception('Unknown role') }}{% endif %}{{ message.role[0] | upper }}:{{ message.content }};{% endfor %}${GENERATION}{# <tool_call> #}`,
};

async function rendered(
  template: keyof typeof TEMPLATES,
  messages: ChatMessage[],
  ask: Partial<ChatAsk> = {},
) {
  const codec = renderedCodec(TEMPLATES[template]);
  const model = { ...toyModel(undefined as never), codec, maxInputLen: 1e6 };
  const plan = await planChat(model, { messages, addGenerationPrompt: true, ...ask });
  return { text: promptText(plan.promptTokens), renders: codec.renders(), warnings: plan.warnings, plan };
}

const said = (text: string): ChatMessage[] =>
  text.split(' ').map((part) => {
    const role = { S: 'system', U: 'user', A: 'assistant' }[part[0]!]!;
    return { role, content: part.slice(1) };
  });
const calling = (...ids: string[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({
    id,
    type: 'function',
    function: { name: 'f', arguments: `{"of":"${id}"}` },
  })),
});
const result = (id: string): ChatMessage => ({ role: 'tool', tool_call_id: id, content: `r-${id}` });

describe('a conversation that a template refuses', () => {
  it.each([
    ['turns', 'Uhi', '<bos>U:hi;A:', 1],
    ['turns', 'Ssys Uhi', '<bos>U:sys\n\nhi;A:', 2],
    ['turns', 'Ssys Uhi Aho Ua Ub', '<bos>U:sys\n\nhi;A:ho;U:a\n\nb;A:', 4],
    ['turns', 'Ssys Uhi Slater Aho Ua', '<bos>U:sys\n\nlater\n\nhi;A:ho;U:a;A:', 3],
    ['turns', 'Ssys', '<bos>U:sys;A:', 2],
    ['first', 'Ssys Uhi', 'S:sys;U:hi;A:', 1],
    ['first', 'Ssys Uhi Slater Uon', 'S:sys\n\nlater;U:hi;U:on;A:', 2],
    ['first', 'Uhi Slater Uon', 'S:later;U:hi;U:on;A:', 2],
    ['first', 'Uhi Uon', 'U:hi;U:on;A:', 1],
    ['ids', 'Ssys Uhi Slater Uon', 'S:sys\n\nlater;U:hi\n\non;', 3],
  ] as const)('%s: %s becomes %j', async (template, messages, text, renders) => {
    expect(await rendered(template, said(messages))).toMatchObject({ text, renders, warnings: [] });
  });

  it('keeps the reasoning and the calls of messages that are joined', async () => {
    const { plan } = await rendered('turns', [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      { role: 'assistant', content: 'x' },
      { role: 'assistant', content: 'y' },
      ...said('Uz'),
    ]);
    expect(promptText(plan.promptTokens)).toBe('<bos>U:a\nb;A:x\n\ny;U:z;A:');
  });

  it('gets ids and single calls where the template has no others', async () => {
    const parallel = [
      ...said('Uhi'),
      calling('call_long_1', 'call_long_2'),
      result('call_long_2'),
      result('call_long_1'),
    ];
    const { text } = await rendered('ids', parallel);
    expect(text).toMatch(
      /^U:hi;\[TOOL_CALLS\](\w{9})=\{"of": "call_long_1"\},(\w{9})=\{"of": "call_long_2"\},;T\2:r-call_long_2;T\1:r-call_long_1;$/,
    );
    const single = await rendered('single', parallel);
    expect(single.text).toBe(
      '<bos><|start_header_id|>U:hi;C:{"of": "call_long_1"};T:r-call_long_1;C:{"of": "call_long_2"};T:r-call_long_2;A:',
    );
  });

  it('of two rules, one of which is told at a time, keeps its functions', async () => {
    const tools = [tool({ a: {} })];
    const messages = [...said('Ssys Uhi'), calling('long_id'), result('long_id'), ...said('Slater')];
    const late = await rendered('late', messages, { tools });
    expect(late.text).toMatch(/^S:sys\n\nlater;\[AVAILABLE_TOOLS\].*U:hi;C\w{9};T\w{9}:r-long_id;$/);
    expect(late.warnings).toEqual([]);
  });

  it('keeps the nearest of the forms that are refused for another reason', async () => {
    const messages = [...said('Ssys Uhi Slater Uon'), calling('long_id'), result('long_id')];
    const { text } = await rendered('ids', messages, { tools: [tool({ a: {} })] });
    expect(text).toMatch(/^S:sys\n\nlater;\[AVAILABLE_TOOLS\].*U:hi\n\non;/s);
  });

  it('is refused with the first reason where no form is taken', async () => {
    const error = await rendered('turns', said('Ahi Ssys Uho')).catch((thrown: Error) => thrown);
    expect((error as Error).message).toContain('Conversation roles must alternate');
  });
});

describe('arguments of calls', () => {
  it.each([undefined, null, '', ' \n', 'null', ' null '])('that are %j are an empty object', async (args) => {
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: args } };
    const messages = [...said('Uhi'), { ...calling(), tool_calls: [call] }, result('a')];
    expect((await rendered('single', messages)).text).toBe('<bos><|start_header_id|>U:hi;C:{};T:r-a;A:');
    expect((await rendered('turns', messages)).text).toContain('"arguments": {}}');
  });
});

const tool = (properties: object, more: object = {}): FunctionTool => ({
  name: 'f',
  parameters: { type: 'object', properties, ...more } as FunctionTool['parameters'],
});

describe('functions that a template refuses', () => {
  it.each([
    [{ a: { type: 'string', description: 'd' } }, '<a:string:d>', []],
    [{ a: { anyOf: [{ type: 'null' }, { type: 'integer' }], default: null } }, '<a:integer:>', ['simpler']],
    [{ a: { type: ['null', 'number'] } }, '<a:number:>', ['simpler']],
    [{ a: {}, b: { enum: [1, 2] }, c: { const: true } }, '<a:string:><b:integer:><c:boolean:>', ['simpler']],
    [{ a: { $ref: '#/$defs/P' }, b: { $ref: '#/$defs/none' } }, '<a:object:of P><b:string:>', ['simpler']],
    [{ a: { allOf: [{ type: 'array' }, { description: 'd' }] } }, '<a:array:d>', ['simpler']],
    [{ a: { $ref: '#/$defs/loop' } }, '<a:string:>', ['simpler']],
  ])('%j are given as %s', async (properties, text, warnings) => {
    const $defs = {
      P: { type: 'object', description: 'of P', properties: { x: {} } },
      loop: { $ref: '#/$defs/loop' },
    };
    const found = await rendered('adds', said('Uhi'), { tools: [tool(properties, { $defs })] });
    expect(found.text).toBe(`<function=f>${text}U:hi;A:`);
    expect(found.warnings).toEqual(warnings.map((word) => expect.stringContaining(word)));
    expect(found.renders).toBe(1 + warnings.length);
  });

  it('come as text where the template takes none, and their calls are read from text', async () => {
    const found = await rendered('none', [...said('Ssys Uhi'), calling('a', 'b'), result('a'), result('b')], {
      tools: [tool({ a: {} })],
    });
    expect(found.text).toMatch(
      /^S:sys\n\nYou may call functions.*U:hi;A:<tool_call>.*<\/tool_call>;U:<tool_response>/s,
    );
    expect(found.warnings).toEqual([expect.stringContaining('a text in the conversation')]);
    const parser = found.plan.createParser!();
    const parts = [
      ...parser.push('<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'),
      ...parser.end(),
    ];
    expect(parts[0]).toEqual({ type: 'call', name: 'f' });
  });

  it('of a schema that writes itself many times over are bounded', async () => {
    const branch = { type: 'object', properties: { a: { $ref: '#/$defs/D' }, b: { $ref: '#/$defs/D' } } };
    const { warnings } = await rendered('adds', said('Uhi'), {
      tools: [tool({ x: { $ref: '#/$defs/D' } }, { $defs: { D: branch } })],
    });
    expect(warnings).toHaveLength(1);
  });

  it('alone make a conversation that a template without the role system takes', async () => {
    const { text } = await rendered('turns', said('Uhi'), { tools: [tool({ a: {} })] });
    expect(text).toMatch(/^<bos>U:You may call functions.*\n\nhi;A:$/s);
  });
});

it('a template is tried twenty times at most, and never for its limits', async () => {
  const conversation = [
    ...said('Ssys Uhi Uho Slater'),
    calling('a', 'b'),
    result('a'),
    result('b'),
    ...said('Uon Uoff'),
  ];
  const codec = renderedCodec('{{ raise_exception(messages | length | string) }}{{ tools }}<tool_call>');
  const model = { ...toyModel(undefined as never), codec };
  const ask = { messages: conversation, tools: [tool({ a: {} })] };
  await expect(planChat(model, ask)).rejects.toThrow('9');
  expect(codec.renders()).toBeLessThanOrEqual(20);
  const endless = renderedCodec(
    '{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}{{ tools }}',
  );
  await expect(planChat({ ...model, codec: endless }, ask)).rejects.toThrow('steps');
  expect(endless.renders()).toBe(1);
});

it('a template that refuses is not tried again after two seconds', async () => {
  const rendering = async (ms: number) => {
    const codec = renderedCodec('{{ raise_exception(messages | length | string) }}{{ tools }}<tool_call>');
    const encodeChat: typeof codec.encodeChat = (...given) => {
      vi.advanceTimersByTime(ms);
      return codec.encodeChat(...given);
    };
    const model = { ...toyModel(undefined as never), codec: { ...codec, encodeChat } };
    const plan = planChat(model, { messages: said('Ssys Uhi'), tools: [tool({ a: {} })] });
    await expect(plan).rejects.toThrow('2');
    return codec.renders();
  };
  expect(await rendering(2001)).toBe(1);
  expect(await rendering(1001)).toBe(2);
  expect(await rendering(0)).toBeGreaterThan(2);
});
