import { describe, expect, it } from 'vitest';
import { specialBytes } from '../../../../engine/guided/special-bytes.js';
import { matcherOf, matches } from '../follow.js';

const ARGUMENTS = { type: 'object', properties: { x: { type: 'integer' } }, required: ['x'] };
const tag = (name: string) => ({
  type: 'tag',
  begin: `<f=${name}>`,
  content: { type: 'json_schema', json_schema: ARGUMENTS },
  end: '</f>',
});

function accepted(guide: unknown, texts: readonly string[]): string[] {
  const matcher = matcherOf('structural_tag', guide);
  return texts.filter((text) => matches(matcher, text));
}

describe('a structural tag', () => {
  it('may name special tokens, which no text is, and have them begin tags without a trigger', () => {
    const begun = {
      type: 'tag',
      begin: { type: 'token', token: '<go>' },
      content: { type: 'regex', pattern: '[0-9]' },
      end: '.',
    };
    const guide = { type: 'triggered_tags', triggers: ['<f='], tags: [tag('a'), begun] };
    const matcher = matcherOf('structural_tag', { format: guide });
    const go = [...specialBytes('<go>')];
    const bytes = (...parts: (string | number[])[]) =>
      parts.flatMap((part) => (typeof part === 'string' ? [...Buffer.from(part)] : part));
    expect(matches(matcher, bytes('so ', go, '1. and ', go, '2.<f=a>{"x":1}</f>'))).toBe(true);
    expect(matches(matcher, bytes('<f', go, '1.'))).toBe(true);
    expect(matches(matcher, bytes(go, 'x.'))).toBe(false);
    expect(matches(matcher, bytes('so ', [...specialBytes('<stop>')]))).toBe(false);
    // Its characters are text like any other.
    expect(matches(matcher, '<go>x')).toBe(true);
  });

  it('has any number of formats next to each other, and few within each other', () => {
    const digit = { type: 'regex', pattern: '[0-9]' };
    const row = { type: 'sequence', elements: Array(1000).fill(digit) };
    expect(matches(matcherOf('structural_tag', { format: row }), '7'.repeat(1000))).toBe(true);
    const within = (depth: number): object =>
      depth === 1 ? digit : { type: 'sequence', elements: [within(depth - 1)] };
    expect(() => matcherOf('structural_tag', { format: within(2000) })).toThrow('are nested deeper than');
  });

  it('writes an object as keyword arguments', () => {
    const content = (json_schema: object) => ({
      format: { type: 'json_schema', json_schema, style: 'keyword_arguments' },
    });
    const schema = {
      type: 'object',
      properties: { a: { type: 'integer' }, b: { enum: ['x'] } },
      required: ['b'],
    };
    expect(accepted(content(schema), ['a=1, b="x"', 'b="x"', 'a=1', 'b="x", c=1', '{"b":"x"}', ''])).toEqual([
      'a=1, b="x"',
      'b="x"',
    ]);
    expect(accepted(content({ type: 'object', properties: {} }), ['', 'a=1'])).toEqual(['']);
    for (const odd of [
      { type: 'string' },
      { anyOf: [schema, { type: 'null' }] },
      { type: 'object', properties: { 'a b': {} } },
      { ...schema, additionalProperties: true },
    ]) {
      expect(() => matcherOf('structural_tag', content(odd))).toThrow(
        /keyword arguments|name of an argument/,
      );
    }
  });

  it('leaves text as it is until a trigger comes', () => {
    const triggered = { type: 'triggered_tags', triggers: ['<f='], tags: [tag('a'), tag('b')] };
    const texts = [
      '',
      'plain < <f text',
      'so <f=a>{"x":1}</f> and <f=b>{"x": 2}</f>.',
      '<f=c>',
      '<f=a>{}</f>',
      '<<f=a>{"x":1}</f>',
      '<f=a>{"x":1}',
    ];
    const valid = [texts[0], texts[1], texts[2], texts[5]];
    expect(accepted({ format: triggered }, texts)).toEqual(valid);
    expect(accepted({ format: { ...triggered, at_least_one: true } }, texts)).toEqual(valid.slice(2));
    expect(
      accepted({ format: { ...triggered, stop_after_first: true } }, [...texts, 'a <f=a>{"x":1}</f>']),
    ).toEqual(['', texts[1], texts[5], 'a <f=a>{"x":1}</f>']);
    const older = {
      structures: [
        { begin: '<f=a>', schema: ARGUMENTS, end: '</f>' },
        { begin: '<f=b>', schema: ARGUMENTS, end: '</f>' },
      ],
      triggers: ['<f='],
    };
    expect(accepted(older, texts)).toEqual(valid);
  });

  it('finds a trigger whatever came before it', () => {
    const format = {
      type: 'triggered_tags',
      triggers: ['aab'],
      tags: [{ ...tag('a'), begin: 'aab', end: '!' }],
    };
    expect(accepted({ format }, ['aaab', 'aaab{"x":1}!', 'aaaaa', 'abaab{"x":1}!aa'])).toEqual([
      'aaab{"x":1}!',
      'aaaaa',
      'abaab{"x":1}!aa',
    ]);
  });

  it('puts formats in a sequence, chooses among them, and separates tags', () => {
    const element = {
      type: 'or',
      elements: [
        { type: 'regex', pattern: '[0-9]+' },
        { type: 'grammar', grammar: 'root ::= "(" root? ")"' },
      ],
    };
    const format = {
      type: 'sequence',
      elements: [
        { type: 'const_string', value: 'n=' },
        element,
        { type: 'tag', begin: '<', content: { type: 'any_text' }, end: '>' },
      ],
    };
    expect(accepted({ format }, ['n=12<ab c>', 'n=(())<>', 'n=1<a>>', 'n=<a>', 'n=()'])).toEqual([
      'n=12<ab c>',
      'n=(())<>',
    ]);
    const separated = { type: 'tags_with_separator', tags: [tag('a')], separator: ';', at_least_one: true };
    expect(
      accepted({ format: separated }, ['', '<f=a>{"x":1}</f>', '<f=a>{"x":1}</f>;<f=a>{"x":1}</f>']),
    ).toHaveLength(2);
  });

  it.each([
    [{}, 'refused at format: it is null'],
    [{ format: { type: 'none' } }, 'type is "none"'],
    [
      { format: { type: 'json_schema', json_schema: {}, style: 'yaml' } },
      'it is "yaml"; json, keyword_arguments or gemma4 is expected',
    ],
    [
      { format: { type: 'triggered_tags', triggers: ['<g='], tags: [tag('a')] } },
      'no tag begins with the trigger "<g="',
    ],
    [{ format: { type: 'triggered_tags', triggers: [''], tags: [tag('a')] } }, 'it is empty'],
    [
      { structures: [{ begin: 'a', schema: { $dynamicRef: '#' }, end: 'b' }], triggers: ['a'] },
      'keyword $dynamicRef is not supported',
    ],
    [
      {
        structures: [
          { begin: 'a', schema: {}, end: 'b' },
          { begin: 'c', schema: {}, end: '' },
        ],
        triggers: ['a'],
      },
      'no trigger is the beginning of "c"',
    ],
  ])('%j is refused: %s', (guide, why) => {
    expect(() => matcherOf('structural_tag', guide)).toThrow(why);
  });
});
