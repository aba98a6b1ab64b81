import { describe, expect, it } from 'vitest';
import {
  CALL_BEGIN,
  CALL_END,
  CALL_SEPARATOR,
  CALLS_BEGIN,
  CALLS_END,
} from '../../../../src/generation/tools/deepseek-parser.js';
import { callsFormat, freeFormat } from '../../../../src/generation/tools/tool-guide.js';
import type { TextFormatName } from '../../../../src/generation/tools/types.js';
import { matcherOf, matches } from '../../../engine/guided/follow.js';

const TOOLS = ['f', 'g'].map((name) => ({ name }));
const schema = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] };

function guides(format: TextFormatName, templateSource: string | null, isSingle = false) {
  const options = {
    tools: TOOLS,
    isSingle,
    specialTexts: new Set<string>(),
    templateSource,
    schemaOf: () => ({ schema, isStrict: true }),
  };
  const accepts = (guide: object) => {
    const matcher = matcherOf('structural_tag', { format: guide });
    return (text: string) => matches(matcher, text);
  };
  return { calls: accepts(callsFormat(format, options)), any: accepts(freeFormat(format, options)) };
}

const fenced = (name: string) =>
  `${CALL_BEGIN}function${CALL_SEPARATOR}${name}\n\`\`\`json\n{"a":1}\n\`\`\`${CALL_END}`;
const bare = (name: string) => `${CALL_BEGIN}${name}${CALL_SEPARATOR}{"a":1}${CALL_END}`;
const deepSeek = (separator: string, ...calls: string[]) => CALLS_BEGIN + calls.join(separator) + CALLS_END;

/** Calls of f, and of f and g, as a model of the format writes them. */
const WRITTEN: [TextFormatName, string | null, string, string][] = [
  [
    'hermes',
    null,
    '<tool_call>\n{"name": "f", "arguments": {"a":1}}\n</tool_call>',
    '<tool_call>\n{"name": "f", "arguments": {"a":1}}\n</tool_call>\n<tool_call>\n{"name": "g", "arguments": {"a":1}}\n</tool_call>',
  ],
  [
    'qwen3_coder',
    null,
    '<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>',
    '<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=g>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>',
  ],
  ['deepseek_v3', null, deepSeek('', fenced('f')), deepSeek('\n', fenced('f'), fenced('g'))],
  ['deepseek_v3', '```json', deepSeek('', fenced('f')), deepSeek('\n', fenced('f'), fenced('g'))],
  ['deepseek_v3', 'V3.1', deepSeek('', bare('f')), deepSeek('', bare('f'), bare('g'))],
  [
    'mistral',
    '[TOOL_CALLS]',
    '[TOOL_CALLS] [{"name": "f", "arguments": {"a":1}}]',
    '[TOOL_CALLS] [{"name": "f", "arguments": {"a":1}}, {"name": "g", "arguments": {"a":1}}]',
  ],
  ['mistral', '[ARGS]', '[TOOL_CALLS]f[ARGS]{"a":1}', '[TOOL_CALLS]f[ARGS]{"a":1}[TOOL_CALLS]g[ARGS]{"a":1}'],
  [
    'mistral',
    '[ARGS][CALL_ID]',
    '[TOOL_CALLS]f[CALL_ID]aB3dE5gH7[ARGS]{"a":1}',
    '[TOOL_CALLS]f[CALL_ID]aB3dE5gH7[ARGS]{"a":1}[TOOL_CALLS]g[CALL_ID]aB3dE5gH8[ARGS]{"a":1}',
  ],
  [
    'llama3_json',
    null,
    '{"name": "f", "parameters": {"a":1}}',
    '{"name": "f", "parameters": {"a":1}}; {"name": "g", "parameters": {"a":1}}',
  ],
  ['pythonic', null, '[f(a=1)]', '[f(a=1), g(a=1)]'],
  [
    'gemma4',
    null,
    '<|tool_call>call:f{a:1}<tool_call|>',
    '<|tool_call>call:f{a:1}<tool_call|><|tool_call>call:g{a:1}<tool_call|>',
  ],
];

describe.each(WRITTEN)('the guide of calls in %s (template %s)', (format, template, one, two) => {
  it('takes a call, and several unless there may be only one', () => {
    const { calls, any } = guides(format, template);
    expect([one, two].map(calls)).toEqual([true, true]);
    expect([one, two].map(any)).toEqual([true, true]);
    const single = guides(format, template, true);
    expect([one, two].map(single.calls)).toEqual([true, false]);
    expect(single.any(one)).toBe(true);
  });

  it('takes no call of other functions, with other arguments, or cut', () => {
    const { calls } = guides(format, template);
    const other = one.replace(/(?<=["=:▁｜ [\]>\n])f(?=[">([{<\n｜])/, 'h');
    expect(other).not.toBe(one);
    expect(calls(other)).toBe(false);
    expect(calls(one.replace('1', '"x"'))).toBe(false);
    expect(calls(one.slice(0, -1))).toBe(false);
    expect(calls('')).toBe(false);
    expect(calls('Hello.')).toBe(false);
  });

  it('takes any other text where calls need not be', () => {
    const { any } = guides(format, template);
    expect(any('Hello, you.')).toBe(true);
    expect(any('')).toBe(true);
  });
});
