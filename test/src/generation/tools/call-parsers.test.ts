import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  CALL_BEGIN,
  CALL_END,
  CALL_SEPARATOR,
  CALLS_BEGIN,
  CALLS_END,
} from '../../../../src/generation/tools/deepseek-parser.js';
import { HermesParser } from '../../../../src/generation/tools/hermes-parser.js';
import { PartList } from '../../../../src/generation/tools/part-list.js';
import type { AnswerPart } from '../../../../src/generation/tools/types.js';
import { draws } from '../../../support/scale.js';
import { cut, NAMES, nearlyCalls, PARSERS } from './nearly-calls.js';

function read(format: string, pieces: readonly string[]): AnswerPart[] {
  const parser = PARSERS[format]!();
  const parts = new PartList();
  for (const piece of pieces) parts.append(parser.push(piece));
  parts.append(parser.end());
  return parts.take();
}

/** Such as ['text', { f: '{"a":1}' }]. */
function told(format: string, text: string): (string | Record<string, string>)[] {
  const list: (string | Record<string, string>)[] = [];
  let name = '';
  for (const part of read(format, [text])) {
    if (part.type === 'call') {
      name = part.name;
      list.push({ [name]: '' });
    } else if (part.type === 'arguments') (list.at(-1) as Record<string, string>)[name] = part.text;
    else list.push(part.text);
  }
  return list;
}

type Case = [string, string, (string | Record<string, string>)[]];

function qwen3CoderCases(): Case[] {
  const call = (...args: string[]) => `<tool_call>\n<function=f>\n${args.join('')}</function>\n</tool_call>`;
  const arg = (name: string, value: string) => `<parameter=${name}>\n${value}\n</parameter>\n`;
  const is = (text: string, ...parts: (string | Record<string, string>)[]): Case => [
    'qwen3_coder',
    text,
    parts,
  ];
  return [
    is('Hello <b>you</b>', 'Hello <b>you</b>'),
    is(call(), { f: '{}' }),
    is(`Look.\n${call(arg('city', 'Zürich'), arg('days', '3'))}`, 'Look.', {
      f: '{"city": "Zürich", "days": 3}',
    }),
    is(`${call()}\n${call(arg('flag', 'True'))}\n`, { f: '{}' }, { f: '{"flag": true}' }),
    is(call(arg('city', 'a\n\n<b>"x"\\ 🪿\n')), { f: '{"city": "a\\n\\n<b>\\"x\\"\\\\ 🪿\\n"}' }),
    // A number where a text is wanted stays one, and so does null.
    is(call(arg('city', '5'), arg('unit', 'c')), { f: '{"city": "5", "unit": "c"}' }),
    is(call(arg('maybe', 'null')), { f: '{"maybe": null}' }),
    is(call(arg('maybe', '5')), { f: '{"maybe": "5"}' }),
    is(call(arg('tags', "['a', None]")), { f: '{"tags": ["a", null]}' }),
    is(call(arg('tags', '[1, {"a": 2}]')), { f: '{"tags": [1, {"a": 2}]}' }),
    is(call(arg('days', 'many')), { f: '{"days": "many"}' }),
    is(call(arg('free', '{"a": 1}'), arg('other', 'x y')), { f: '{"free": {"a": 1}, "other": "x y"}' }),
    is(call(arg('city', '')), { f: '{"city": ""}' }),
    // Without the outer tag, with arguments that are not closed, and cut.
    is('<function=g.h><parameter=city>Rome</parameter></function>', { 'g.h': '{"city": "Rome"}' }),
    is('<tool_call><function=f><parameter=city>\nRome\n<parameter=days>\n2\n</function>', {
      f: '{"city": "Rome", "days": 2}',
    }),
    is('<tool_call><function=f><parameter=city>\nRo', { f: '{"city": "Ro' }),
    is('x <tool_call>f(1)</tool_call> y', 'x <tool_call>f(1)</tool_call> y'),
    is('x <function=a b> y', 'x <function=a b> y'),
    is('<tool_call>\n{"name": "f"}', '<tool_call>\n{"name": "f"}'),
    is(`<tool_call><${call()}`, '<tool_call><', { f: '{}' }),
    is(`${call()} Done`, { f: '{}' }, ' Done'),
  ];
}

function deepSeekCases(): Case[] {
  const fenced = (name: string, args: string) =>
    `${CALL_BEGIN}function${CALL_SEPARATOR}${name}\n\`\`\`json\n${args}\n\`\`\`${CALL_END}`;
  const bare = (name: string, args: string) => `${CALL_BEGIN}${name}${CALL_SEPARATOR}${args}${CALL_END}`;
  const all = (...calls: string[]) => CALLS_BEGIN + calls.join('\n') + CALLS_END;
  const is = (text: string, ...parts: (string | Record<string, string>)[]): Case => [
    'deepseek_v3',
    text,
    parts,
  ];
  return [
    is('Hello <b>you</b>', 'Hello <b>you</b>'),
    is(all(fenced('f', '{"a": 1}')), { f: '{"a": 1}' }),
    is(all(bare('f', '{"a": "Zürich 🪿"}')), { f: '{"a": "Zürich 🪿"}' }),
    is(
      `Look.\n${all(fenced('f', '{}'), fenced('g', '{"b": [1, "}"]}'))}`,
      'Look.',
      { f: '{}' },
      { g: '{"b": [1, "}"]}' },
    ),
    is(all(bare('f', '{}'), bare('g', '{}')), { f: '{}' }, { g: '{}' }),
    is(CALLS_BEGIN + fenced('f', '{"a": 1}').slice(0, -CALL_END.length - 3), { f: '{"a": 1}' }),
    is(CALLS_BEGIN + bare('f', '{"a": "Ro').slice(0, -CALL_END.length), { f: '{"a": "Ro' }),
    is(bare('f', '{}'), { f: '{}' }),
    is(`${all(bare('f', '{}'))}`, { f: '{}' }),
    // Text that is no call stays text.
    is(`${CALLS_BEGIN}so${CALLS_END}`, `${CALLS_BEGIN}so${CALLS_END}`),
    is(`a ${CALL_BEGIN}f(1)${CALL_END}`, `a ${CALL_BEGIN}f(1)${CALL_END}`),
    is(`${CALL_BEGIN}f g${CALL_SEPARATOR}{"a": 1}`, `${CALL_BEGIN}f g${CALL_SEPARATOR}{"a": 1}`),
    is(`${CALL_BEGIN}f${CALL_SEPARATOR}{so`, `${CALL_BEGIN}f${CALL_SEPARATOR}{so`),
  ];
}

function gemma4Cases(): Case[] {
  const call = (name: string, args: string) => `<|tool_call>call:${name}{${args}}<tool_call|>`;
  const is = (text: string, ...parts: (string | Record<string, string>)[]): Case => ['gemma4', text, parts];
  return [
    is('Hello <b>you</b> <|', 'Hello <b>you</b> <|'),
    is(call('f', ''), { f: '{}' }),
    is(
      `Look.\n${call('f', 'city:<|"|>Zürich 🪿<|"|>,days:3')}${call('get_weather', '')}\n`,
      'Look.',
      { f: '{"city": "Zürich 🪿", "days": 3}' },
      { get_weather: '{}' },
    ),
    is(`${call('f', 'flag:true')} Done`, { f: '{"flag": true}' }, ' Done'),
    is(call('f', 'city:<|"|>"a"\n\\ {b}, <|"|>'), { f: '{"city": "\\"a\\"\\n\\\\ {b}, "}' }),
    is(call('f', 'free:{a:[1,-2.5e3,{}],b:null,<|"|>c d<|"|>:<|"|><|"|>}'), {
      f: '{"free": {"a": [1, -2.5e3, {}], "b": null, "c d": ""}}',
    }),
    // As JSON and Python write them.
    is(call('f', '"city": "Ro\\"me", "free": [None, True, ]'), {
      f: '{"city": "Ro\\"me", "free": [null, true]}',
    }),
    // Words without quotes, and what the parameters say.
    is(call('f', 'city:New York,days:2'), { f: '{"city": "New York", "days": 2}' }),
    is(call('f', 'city:5,maybe:null,free:x y'), { f: '{"city": "5", "maybe": null, "free": "x y"}' }),
    is(call('f', 'days:<|"|>3<|"|>,tags:<|"|>[1, "x"]<|"|>'), { f: '{"days": 3, "tags": [1, "x"]}' }),
    is(call('f', 'days:<|"|>many<|"|>,flag:<|"|>True<|"|>'), { f: '{"days": "many", "flag": true}' }),
    is(call('f', 'free:{city:5},city:'), { f: '{"free": {"city": 5}, "city": ""}' }),
    is(call('other', 'city:5,constructor:constructor'), {
      other: '{"city": 5, "constructor": "constructor"}',
    }),
    // Without an end, and with the begin of a result after the calls.
    is('<|tool_call>call:f{}<|tool_call>call:a.b{}', { f: '{}' }, { 'a.b': '{}' }),
    is(`${call('f', '')}<|tool_response>response:f{value:1}<tool_response|>Then.`, { f: '{}' }),
    is('<|tool_call>call:f{}<|tool_response>x', { f: '{}' }),
    is('no <|tool_response>x', 'no <|tool_response>x'),
    // Cut, and broken.
    is('cut <|tool_call>call:f{ci', 'cut <|tool_call>call:f{ci'),
    is('cut <|tool_call>call:f{city:<|"|>Ro', 'cut', { f: '{"city": "Ro' }),
    is(`${call('f', 'days:[1,2')}!`, { f: '{"days": [1, 2}' }, '!'),
    is(`${call('f', 'days:1<2,a')} x`, { f: '{"days": 1<2,a}' }, ' x'),
    is(call('f', 'days:[,]'), { f: '{"days": [,]}' }),
    // A name within a list is none of the parameters', and white space may stand in front of a colon.
    is(call('f', 'city:[5,{a:6}]'), { f: '{"city": [5, {"a": 6}]}' }),
    is(call('f', 'city :5'), { f: '{"city": "5"}' }),
    is('x <|tool_call>f(1)<tool_call|> y', 'x <|tool_call>f(1)<tool_call|> y'),
    is('<|tool_call>call:f g{}<tool_call|>', '<|tool_call>call:f g{}<tool_call|>'),
    is('<|tool_call>call:{a:1}<tool_call|>', '<|tool_call>call:{a:1}<tool_call|>'),
    is(`<|tool_call>call:f{<${call('f', 'days:1')}`, '<|tool_call>call:f{<', { f: '{"days": 1}' }),
    // Thoughts that come later, and marks of none.
    is('Yes.<|channel>thought\n<channel|>', 'Yes.'),
    is('Yes.<channel|>', 'Yes.'),
    is('A.\n<|channel>thought\nHm, so.\n<channel|>B.', 'A.\n', 'Hm, so.', 'B.'),
    is('<|channel>Hm.', 'Hm.'),
  ];
}

describe('calls', () => {
  it.each<[string, string, (string | Record<string, string>)[]]>([
    ['hermes', 'Hello <b>you</b>', ['Hello <b>you</b>']],
    ...qwen3CoderCases(),
    ...deepSeekCases(),
    ...gemma4Cases(),
    ['hermes', '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>', [{ f: '{"a": 1}' }]],
    [
      'hermes',
      'Let me look.\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>\n<tool_call>{"arguments":{"b":[1,{"c":"}"}]},"name":"g"}</tool_call>\n',
      ['Let me look.', { f: '{}' }, { g: '{"b":[1,{"c":"}"}]}' }],
    ],
    ['hermes', '<tool_call>{"name": "f"}</tool_call> Done', [{ f: '{}' }, ' Done']],
    ['hermes', '<tool_call>{"name": "f", "arguments": "{\\"a\\":1}"}</tool_call>', [{ f: '{"a":1}' }]],
    ['hermes', '<tool_call>{"name": "f", "arguments": {"a": 1}</tool_call>', [{ f: '{"a": 1}' }]],
    ['hermes', '<tool_call>{"name": "f", "arguments": {"a": 1}}', [{ f: '{"a": 1}' }]],
    [
      'hermes',
      '<tool_call>{"name":"f","arguments":{}}\n{"name":"g","arguments":{}}</tool_call>',
      [{ f: '{}' }, { g: '{}' }],
    ],
    ['hermes', 'x <tool_call>f(1)</tool_call> y', ['x <tool_call>f(1)</tool_call> y']],
    [
      'hermes',
      '<tool_call>{"name": 1, "arguments": {}}</tool_call>',
      ['<tool_call>{"name": 1, "arguments": {}}</tool_call>'],
    ],
    ['hermes', '<tool_call><tool_call>{"name":"f","arguments":{}}</tool_call>', ['<tool_call>', { f: '{}' }]],
    [
      'hermes',
      '<tool_call>{"name": "f", "arguments": {\'a\': 1}}</tool_call>',
      ['<tool_call>{"name": "f", "arguments": {\'a\': 1}}</tool_call>'],
    ],
    ['hermes', '<tool_call>{"name": "f", "arguments": {"a": x}}</tool_call>!', [{ f: '{"a": x}}' }, '!']],
    ['hermes', 'cut <tool_call>{"name": "f", "argu', ['cut <tool_call>{"name": "f", "argu']],
    ['hermes', 'cut <tool_call>{"name": "f", "arguments": {"a": "x', ['cut', { f: '{"a": "x' }]],
    ['hermes', 'cut <tool_c', ['cut <tool_c']],
    ['llama3_json', '{"name": "f", "parameters": {"a": 1}}', [{ f: '{"a": 1}' }]],
    [
      'llama3_json',
      '{"name": "f", "parameters": {}}; {"name": "a.b", "parameters": {"x": -1.5e3}}',
      [{ f: '{}' }, { 'a.b': '{"x": -1.5e3}' }],
    ],
    [
      'llama3_json',
      '<|python_tag|>{"type": "function", "name": "other", "parameters": {"a": null}};',
      [{ other: '{"a": null}' }],
    ],
    ['llama3_json', 'So: <|python_tag|>{"name": "f", "parameters": {}} yes', ['So:', { f: '{}' }, ' yes']],
    ['llama3_json', '{"name": "John", "parameters": {}}', ['{"name": "John", "parameters": {}}']],
    ['llama3_json', '{"city": "Paris"}', ['{"city": "Paris"}']],
    ['llama3_json', '{"name": "f"}', ['{"name": "f"}']],
    ['llama3_json', '<|python_tag|>print(1)', ['<|python_tag|>print(1)']],
    [
      'llama3_json',
      ' \n plain {"name": "f", "parameters": {}}',
      [' \n plain {"name": "f", "parameters": {}}'],
    ],
    [
      'mistral',
      '[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}, "id": "abc"}, {"name": "g", "arguments": {}}]',
      [{ f: '{"a": 1}' }, { g: '{}' }],
    ],
    ['mistral', 'Sure.[TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g[ARGS]{}', ['Sure.', { f: '{"a": 1}' }, { g: '{}' }]],
    ['mistral', '[TOOL_CALLS]f[CALL_ID]aB3dE5gH7[ARGS]{"a": [1, 2]}', [{ f: '{"a": [1, 2]}' }]],
    ['mistral', '[TOOL_CALLS]{"name": "f", "arguments": {}}', [{ f: '{}' }]],
    ['mistral', '[TOOL_CALLS]{"name": "f"}', [{ f: '{}' }]],
    ['mistral', '[TOOL_CALLS] none', ['[TOOL_CALLS] none']],
    ['mistral', '[TOOL_CALLS] [ , x]', ['[TOOL_CALLS] [ , x]']],
    ['mistral', '[TOOL_CALLS] [{"name": "f", "arguments": {}}, {"x": 1}]', [{ f: '{}' }, '{"x": 1}]']],
    ['mistral', '[1, 2] and [TOOL', ['[1, 2] and [TOOL']],
    ['pythonic', '[f(a=1, b="x")]', [{ f: '{"a": 1, "b": "x"}' }]],
    [
      'pythonic',
      "[f(), get_weather(city='Par\\'is', n=[1, (2,), {'k': None}], ok=True,)]",
      [{ f: '{}' }, { get_weather: '{"city": "Par\'is", "n": [1, [2], {"k": null}], "ok": true}' }],
    ],
    ['pythonic', '[f(a="\\u00e9\\n\\"")] thanks', [{ f: '{"a": "é\\n\\""}' }, ' thanks']],
    ['pythonic', '[f(a=.5, b=1_000, c=-2.)]', [{ f: '{"a": 0.5, "b": 1000, "c": -2.0}' }]],
    ['pythonic', '[g(a=1)]', ['[g(a=1)]']],
    ['pythonic', '[1, 2]', ['[1, 2]']],
    ['pythonic', '[f(1)]', ['[f(1)]']],
    ['pythonic', 'see [f(a=1)]', ['see [f(a=1)]']],
    ['pythonic', '[f(a=1), x', [{ f: '{"a": 1}' }, ', x']],
  ])('%s: %s', (format, text, parts) => {
    expect(told(format, text)).toEqual(parts);
  });
});

describe.each(Object.keys(PARSERS))('%s', (format) => {
  it('says the same however the text is cut', () => {
    fc.assert(
      fc.property(nearlyCalls, fc.array(fc.nat(200), { maxLength: 20 }), (whole, places) => {
        const all = read(format, [whole]);
        expect(read(format, cut(whole, places))).toEqual(all);
        expect(read(format, whole.split(''))).toEqual(all);
      }),
      { numRuns: draws(300) },
    );
  });

  it('loses no text: what is no call is content', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60, unit: 'grapheme' }), (whole) => {
        // Nothing of it is one of the markers, and it names no function.
        fc.pre(!/[[{<]/.test(whole));
        expect(read(format, whole.split(''))).toEqual(whole === '' ? [] : [{ type: 'content', text: whole }]);
      }),
      { numRuns: draws(100) },
    );
  });

  it('says arguments only of a call', () => {
    fc.assert(
      fc.property(nearlyCalls, (whole) => {
        let hasCall = false;
        for (const part of read(format, [whole])) {
          if (part.type === 'call') hasCall = true;
          if (part.type === 'content') hasCall = false;
          if (part.type === 'arguments') expect(hasCall).toBe(true);
        }
      }),
      { numRuns: draws(100) },
    );
  });
});

const args = fc.dictionary(
  fc.stringMatching(/^[a-z_]{1,8}$/),
  fc.jsonValue({ maxDepth: 3, noUnicodeString: false }),
  { maxKeys: 4, noNullPrototype: true },
);
const calls = fc.array(fc.record({ name: fc.constantFrom(...NAMES), args }), { minLength: 1, maxLength: 4 });

const WRITERS: Record<string, (calls: readonly { name: string; args: object }[], indent: number) => string> =
  {
    hermes: (list, indent) =>
      list
        .map(
          ({ name, args }) =>
            `<tool_call>\n${JSON.stringify({ name, arguments: args }, null, indent)}\n</tool_call>`,
        )
        .join('\n'),
    llama3_json: (list, indent) =>
      list.map(({ name, args }) => JSON.stringify({ name, parameters: args }, null, indent)).join('; '),
    mistral: (list, indent) =>
      `[TOOL_CALLS] ${JSON.stringify(
        list.map(({ name, args }) => ({ name, arguments: args })),
        null,
        indent,
      )}`,
    deepseek_v3: (list, indent) =>
      `${CALLS_BEGIN}${list
        .map(
          ({ name, args }) =>
            `${CALL_BEGIN}function${CALL_SEPARATOR}${name}\n\`\`\`json\n${JSON.stringify(args, null, indent)}\n\`\`\`${CALL_END}`,
        )
        .join('\n')}${CALLS_END}`,
    gemma4: (list, indent) =>
      list
        .map(({ name, args }) => `<|tool_call>call:${name}${gemma4(args, indent)}<tool_call|>`)
        .join(indent === 0 ? '' : '\n'),
    pythonic: (list) => `[${list.map(({ name, args }) => `${name}(${keywords(args)})`).join(', ')}]`,
  };

function keywords(args: object): string {
  return Object.entries(args)
    .map(([name, value]) => `${name}=${python(value)}`)
    .join(', ');
}

function gemma4(value: unknown, indent: number): string {
  const border = indent === 0 ? '' : ' ';
  const comma = `,${border}`;
  if (typeof value === 'string') return `<|"|>${value}<|"|>`;
  if (Array.isArray(value)) return `[${value.map((one) => gemma4(one, indent)).join(comma)}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, item]) => {
    const key = /^\w+$/.test(name) ? name : `<|"|>${name}<|"|>`;
    return `${key}:${border}${gemma4(item, indent)}`;
  });
  return `{${members.join(comma)}}`;
}

function python(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, item]) => `${JSON.stringify(name)}: ${python(item)}`)
    .join(', ')}}`;
}

describe('written calls', () => {
  it.each(Object.keys(WRITERS))('%s: come back as they were meant', (format) => {
    fc.assert(
      fc.property(calls, fc.constantFrom(0, 2), (list, indent) => {
        const found: { name: string; args: string }[] = [];
        for (const part of read(format, WRITERS[format]!(list, indent).split(''))) {
          if (part.type === 'call') found.push({ name: part.name, args: '' });
          else if (part.type === 'arguments') found.at(-1)!.args += part.text;
          else throw new Error(`content: ${part.text}`);
        }
        const meant = list.map(({ name, args }) => ({ name, args: JSON.parse(JSON.stringify(args)) }));
        expect(found.map(({ name, args }) => ({ name, args: JSON.parse(args) }))).toEqual(meant);
      }),
      { numRuns: draws(100) },
    );
  });

  it('qwen3_coder: texts and all else come back as they were meant', () => {
    const value = fc.record(
      {
        // Any text that does not end the argument.
        city: fc.string({ unit: 'grapheme', maxLength: 20 }).filter((one) => !/<\/?(param|func)/.test(one)),
        days: fc.integer(),
        flag: fc.boolean(),
        tags: fc.array(fc.jsonValue({ maxDepth: 2 }), { maxLength: 3 }),
      },
      { requiredKeys: [], noNullPrototype: true },
    );
    const list = fc.array(fc.record({ name: fc.constantFrom(...NAMES), args: value }), {
      minLength: 1,
      maxLength: 3,
    });
    fc.assert(
      fc.property(list, fc.constantFrom(0, 2), (meant, indent) => {
        const written = meant.map(({ name, args }) => {
          const tags = Object.entries(args).map(([key, item]) => {
            const body = typeof item === 'string' ? item : JSON.stringify(item, null, indent);
            return `<parameter=${key}>\n${body}\n</parameter>\n`;
          });
          return `<tool_call>\n<function=${name}>\n${tags.join('')}</function>\n</tool_call>`;
        });
        const found: { name: string; args: string }[] = [];
        for (const part of read('qwen3_coder', written.join('\n').split(''))) {
          if (part.type === 'call') found.push({ name: part.name, args: '' });
          else if (part.type === 'arguments') found.at(-1)!.args += part.text;
          else throw new Error(`content: ${part.text}`);
        }
        const plain = meant.map(({ name, args }) => ({ name, args: JSON.parse(JSON.stringify(args)) }));
        expect(found.map(({ name, args }) => ({ name, args: JSON.parse(args) }))).toEqual(plain);
      }),
      { numRuns: draws(100) },
    );
  });

  it('are reported with the first character behind the brace of their arguments', () => {
    const parser = new HermesParser();
    expect(parser.push('<tool_call>\n{"name":"f","arguments":{')).toEqual([]);
    expect(parser.push('\n ')).toEqual([]);
    expect(parser.push('"')).toEqual([
      { type: 'call', name: 'f' },
      { type: 'arguments', text: '{\n "' },
    ]);
  });

  it('stream their arguments as they come', () => {
    const parser = new HermesParser();
    parser.push('<tool_call>\n{"name": "f", "arguments": {"city": "Pa');
    expect(parser.push('ri')).toEqual([{ type: 'arguments', text: 'ri' }]);
    expect(parser.push('s"')).toEqual([{ type: 'arguments', text: 's"' }]);
    expect(parser.push('}}\n</tool_call>')).toEqual([{ type: 'arguments', text: '}' }]);
    expect(parser.end()).toEqual([]);
  });
});
