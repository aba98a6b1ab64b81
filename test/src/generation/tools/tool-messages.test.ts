import { describe, expect, it } from 'vitest';
import type { ChatMessage } from '../../../../models/chat-template.js';
import {
  callsOf,
  nativeMessages,
  plainMessages,
  templateTool,
} from '../../../../src/generation/tools/tool-messages.js';

const call = (name: string, args?: unknown, id?: string) => ({
  ...(id !== undefined && { id }),
  function: { name, ...(args !== undefined && { arguments: args }) },
});
const says = (content: string, ...calls: object[]): ChatMessage =>
  ({ role: 'assistant', content, tool_calls: calls }) as never;
const result = (content: string, id?: string): ChatMessage =>
  ({ role: 'tool', content, ...(id !== undefined && { tool_call_id: id }) }) as never;

describe('a function for templates', () => {
  it('has the fields that it was given with, and no others', () => {
    expect(templateTool({ name: 'f' })).toEqual({ type: 'function', function: { name: 'f' } });
    expect(Object.keys((templateTool({ name: 'f' }) as { function: object }).function)).toEqual(['name']);
    const whole = { name: 'f', description: '', parameters: {}, strict: false };
    expect(templateTool(whole)).toEqual({ type: 'function', function: whole });
  });
});

describe('messages for templates that know functions', () => {
  it('have no empty list of calls, and no calls that are none', () => {
    const plain: ChatMessage = { role: 'user', content: 'hi' };
    const [user, empty, odd] = nativeMessages([plain, says('a'), says('b', { function: {} }, {})]);
    expect(user).toBe(plain);
    expect(empty).toEqual({ role: 'assistant', content: 'a' });
    expect(odd).toEqual({ role: 'assistant', content: 'b' });
    expect(callsOf(plain)).toEqual([]);
    expect(callsOf(says('', null as never, { function: { name: 1 } }))).toEqual([]);
  });

  it.each([
    [undefined, '{}'],
    [null, '{}'],
    ['', '{}'],
    [' \n', '{}'],
    ['null', '{}'],
    [' null ', '{}'],
    ['nullx', 'nullx'],
    ['{"a": 1}', '{"a": 1}'],
  ])('have arguments for each call: %j as %j', (given, written) => {
    const [message] = nativeMessages([says('', call('f', given))]);
    expect(message!.tool_calls).toEqual([{ function: { name: 'f', arguments: written } }]);
  });

  it('name the function of a result by the call that it answers', () => {
    const named = { ...result('3', 'a'), name: 'own' } as ChatMessage;
    const messages = nativeMessages([
      says('', call('f', '{}', 'a'), call('g', '{}', 'b')),
      result('1', 'b'),
      result('2', 'c'),
      named,
    ]);
    expect(messages.slice(1)).toEqual([{ ...result('1', 'b'), name: 'g' }, result('2', 'c'), named]);
  });
});

describe('messages for templates that know none', () => {
  const written = (name: string, args: string) =>
    `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;

  it('have calls and results as text', () => {
    expect(
      plainMessages(
        [
          { role: 'user', content: 'x' },
          says('Look.', call('f', { a: 1 }), call('g', '{"b": 2}')),
          result('1'),
          result('2'),
          { role: 'user', content: 'so?' },
          says('', call('f')),
        ],
        [],
      ),
    ).toEqual([
      { role: 'user', content: 'x' },
      { role: 'assistant', content: `Look.\n${written('f', '{"a":1}')}\n${written('g', '{"b": 2}')}` },
      // Results that follow each other are one message; what the user says is another.
      {
        role: 'user',
        content: '<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response>',
      },
      { role: 'user', content: 'so?' },
      { role: 'assistant', content: written('f', '{}') },
    ]);
  });

  it('describe the functions in the system message, which is there or is put in front', () => {
    const tools = [{ name: 'f', parameters: { type: 'object', properties: { a: {} } } }, { name: 'g' }];
    const [first, second] = plainMessages([{ role: 'user', content: 'x' }], tools);
    expect(first!.role).toBe('system');
    expect(first!.content).toContain(
      '{"type":"function","function":{"name":"f","description":"","parameters":{"type":"object","properties":{"a":{}}}}}\n' +
        '{"type":"function","function":{"name":"g","description":"","parameters":{"type":"object","properties":{},"additionalProperties":false}}}',
    );
    expect(second).toEqual({ role: 'user', content: 'x' });
    const [system, ...rest] = plainMessages([{ role: 'system', content: 'Be brief.' }], tools);
    expect(system!.content).toBe(`Be brief.\n\n${first!.content}`);
    expect(rest).toEqual([]);
  });
});
