import { describe, expect, it } from 'vitest';
import { partialInput } from '../../../../src/server/anthropic/content-blocks.js';
import { create, HERMES, PATH, question, refusal, server } from './support.js';

const input_schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const weather = { name: 'weather', description: 'Of a city.', input_schema };
const time = { type: 'custom', name: 'time', input_schema: { type: 'object' } };
const tools = [weather, time];
const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 5 };
const call = (name: string, args: string) =>
  `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;

describe('tools of a message', () => {
  it('are called by blocks of their own', async () => {
    const toy = server(`So.\n${call('weather', '{"city": "Zürich"}')}\n${call('time', '{}')}`, HERMES);
    const message = await create(toy, { tools });
    const used = (name: string, input: object) => ({
      type: 'tool_use',
      id: expect.stringMatching(/^toolu_\w{24}$/),
      name,
      input,
      caller: { type: 'direct' },
    });
    expect(message.content).toEqual([
      { type: 'text', text: 'So.' },
      used('weather', { city: 'Zürich' }),
      used('time', {}),
    ]);
    expect(message.stop_reason).toBe('tool_use');
    expect(JSON.stringify(toy.rendered[0]!.options.tools)).toContain('"description":"Of a city."');
  });

  it.each<[string, object | undefined, boolean, boolean]>([
    ['auto', undefined, false, true],
    ['auto', { type: 'auto' }, false, true],
    ['auto, one at most', { type: 'auto', disable_parallel_tool_use: true }, true, true],
    ['any', { type: 'any' }, true, true],
    ['one of a name', { type: 'tool', name: 'time' }, true, true],
    ['none', { type: 'none' }, false, false],
  ])('are chosen: %s', async (_, tool_choice, isGuided, isTold) => {
    const toy = server(call('time', '{}'), HERMES);
    await create(toy, { tools, tool_choice });
    expect(toy.engine.requests[0]!.guide !== undefined).toBe(isGuided);
    expect(toy.rendered[0]!.options.tools !== undefined).toBe(isTold);
  });

  it('follow their schemas where they are strict', async () => {
    const toy = server('x', HERMES);
    await create(toy, { tools: [{ ...weather, strict: true }] });
    expect(JSON.stringify(toy.engine.requests[0]!.guide)).toContain('city');
  });

  it('of types that are not known are left out, and told', async () => {
    const logged: string[] = [];
    const nothing = () => {};
    const log = {
      debug: nothing,
      info: nothing,
      error: nothing,
      warn: (...given: unknown[]) => logged.push(String(given.at(-1))),
    };
    const toy = server('x', HERMES, { log });
    const response = await toy.post(PATH, {
      ...question,
      tools: [search, weather, { ...search, type: 'ö\n' }],
    });
    expect(response.status).toBe(200);
    expect(JSON.stringify(toy.rendered[0]!.options.tools)).not.toContain('web_search');
    const warning = "Tools of the types 'web_search_20250305', 'ö\n' are not known here and were left out.";
    expect(logged).toEqual([warning]);
    expect(response.headers.get('x-skein-warning')).toBe(
      warning.replace('ö', '\\u00f6').replace('\n', '\\u000a'),
    );
    const long = { ...search, type: 'x'.repeat(5000) };
    const cut = await toy.post(PATH, { ...question, tools: [long] });
    expect(cut.headers.get('x-skein-warning')).toHaveLength(1024);
  });

  it.each<[string, object, string]>([
    ['an unknown name', { tools, tool_choice: { type: 'tool', name: 'none' } }, 'tool_choice.name'],
    ['a choice without tools', { tool_choice: { type: 'any' } }, 'tool_choice'],
    [
      'a choice without a tool that is known',
      { tools: [search], tool_choice: { type: 'any' } },
      'tool_choice',
    ],
    ['another choice', { tools, tool_choice: { type: 'all' } }, 'tool_choice.type'],
    ['two of a name', { tools: [search, weather, search, weather] }, 'tools[3].name'],
    ['no schema', { tools: [search, { name: 'f' }] }, 'tools[1].input_schema'],
    [
      'a schema beyond grammars',
      { tools: [search, { name: 'f', strict: true, input_schema: { not: {} } }] },
      'tools[1].input_schema',
    ],
  ])('%s is refused in the words of this route', async (_, fields, param) => {
    const error = await refusal(server('x', HERMES), fields);
    expect(error).toMatchObject({ status: 400, details: { param } });
    expect(error.message).not.toMatch(/function|parameters/);
  });
});

describe('arguments as an object', () => {
  it.each([
    ['{"a": 1, "b": [2]}', { a: 1, b: [2] }],
    ['', {}],
    ['[1]', {}],
    ['nonsense', {}],
    ['{"a": 1, "b', { a: 1 }],
    ['{"a": 1, "b": "x', { a: 1 }],
    ['{"a": {"c": [1, 2', { a: { c: [1] } }],
    ['{"a": ["}", "\\"]", 3', { a: ['}', '"]'] }],
    ['{"a": {"b": 1}', { a: { b: 1 } }],
    ['}}}', {}],
  ])('%s', (text, input) => {
    expect(partialInput(text)).toEqual(input);
  });
});
