import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { specialBytes } from '../../../../engine/guided/special-bytes.js';
import { Gemma4Object } from '../../../../src/generation/tools/gemma4-value.js';
import { Random } from '../../../../tools/soak/random.js';
import { draws } from '../../../support/scale.js';
import { matcherOf, matches, nextOf } from '../follow.js';

const guide = (json_schema: unknown, more: object = {}) => ({
  format: { type: 'json_schema', json_schema, style: 'gemma4', ...more },
});

function accepted(schema: unknown, texts: readonly string[]): string[] {
  const matcher = matcherOf('structural_tag', guide(schema));
  return texts.filter((text) => matches(matcher, text));
}

const text = (value: string) => `<|"|>${value}<|"|>`;

describe("values in Gemma 4's notation", () => {
  it('have texts in quotes of their own, names without any, and no white space', () => {
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer' }, on: { type: ['boolean', 'null'] } },
      required: ['city'],
    };
    const valid = [
      `{city:${text('Paris')}}`,
      `{city:${text('a "b" <|"| \\ \n {c},')},days:3,on:null}`,
      `{city:${text('<<|"')}}`,
    ];
    const others = [
      `{city:"Paris"}`,
      `{"city":${text('x')}}`,
      `{city: ${text('x')}}`,
      `{city:${text('x')},days:${text('3')}}`,
      `{days:3,city:${text('x')}}`,
      `{city:${text('x<|"|>y')}}`,
      '{}',
    ];
    expect(accepted(schema, [...valid, ...others])).toEqual(valid);
  });

  it('come in the order of their names, as the template describes them', () => {
    const schema = { type: 'object', properties: { b: { enum: [1] }, C: { enum: [2] }, a: { enum: [3] } } };
    const required = { ...schema, required: ['a', 'b', 'C'] };
    expect(accepted(required, ['{a:3,b:1,C:2}', '{b:1,C:2,a:3}'])).toEqual(['{a:3,b:1,C:2}']);
  });

  it('are enums, tuples, names with quotes and values of any kind too', () => {
    const choices = { enum: ['a b', 3, null, ['x', { y: true }], '<|"|>'] };
    expect(
      accepted(choices, [text('a b'), '3', 'null', `[${text('x')},{y:true}]`, text('<|"|>'), 'a b']),
    ).toEqual([text('a b'), '3', 'null', `[${text('x')},{y:true}]`]);
    const odd = { type: 'object', properties: { 'a b:c': { type: 'integer' } }, required: ['a b:c'] };
    expect(accepted(odd, [`{${text('a b:c')}:1}`, '{a b:c:1}'])).toEqual([`{${text('a b:c')}:1}`]);
    const any = [`{a:[1,${text('x')},{}],b_2:{c:-1.5e3}}`, '{}', '{:1}', '{a b:1}', '{a:x}', '{a:1,}'];
    expect(accepted({ type: 'object' }, any)).toEqual(any.slice(0, 2));
    const others = {
      ...odd,
      properties: { ab: {} },
      required: [],
      additionalProperties: { type: 'integer' },
    };
    const more = [`{ab:null,a:1,abc:2}`, '{}', '{b:1}', `{b:${text('x')}}`];
    expect(accepted(others, more)).toEqual(more.slice(0, 3));
  });

  it.each([
    [{ const: 'a<|"|>b' }, 'its root'],
    [{ type: 'object', properties: { x: { enum: [['<|"|>'], { y: '<|"|>' }] } } }, '/properties/x'],
  ])('are refused by name where the quote itself is all that a schema allows: %j', (schema, place) => {
    expect(() => accepted(schema, [])).toThrow(
      `The JSON schema is refused at ${place}: this model writes texts between <|"|>, and the schema lists one with that in it.`,
    );
  });

  it('hold lengths and patterns without their quotes within', () => {
    const short = [text('<|"|'), text('abcd'), text('<<|"'), text('abcde'), text('🪿🪿🪿🪿')];
    expect(accepted({ type: 'string', maxLength: 4 }, short)).toEqual([
      short[0],
      short[1],
      short[2],
      short[4],
    ]);
    const pattern = { type: 'string', pattern: '^[<|">]+$' };
    expect(accepted(pattern, [text('<|"'), text('||'), text('<|"|>'), text('<<|"|>')])).toEqual([
      text('<|"'),
      text('||'),
    ]);
    const dates = { type: 'string', format: 'date' };
    expect(accepted(dates, [text('2026-11-30'), text('2026-11-31')])).toEqual([text('2026-11-30')]);
  });

  it('count long texts', () => {
    const long = (length: number) => text('é'.repeat(length));
    const schema = { type: 'string', minLength: 300, maxLength: 700 };
    const matcher = matcherOf('structural_tag', guide(schema));
    const lengths = [0, 299, 300, 511, 512, 513, 700, 701];
    expect(lengths.filter((length) => matches(matcher, long(length)))).toEqual([300, 511, 512, 513, 700]);
    // A quote may not stand on the border of two pieces either.
    for (const before of [254, 255, 256, 257]) {
      const value = `${'a'.repeat(before)}<|"|>${'a'.repeat(100)}`;
      expect(matches(matcher, text(value))).toBe(false);
    }
  });

  it('have a least length without a greatest, and a length that many strings share', () => {
    const least = matcherOf('structural_tag', guide({ type: 'string', minLength: 2 }));
    const texts = ['a', 'ab', '<|', 'abc<|"', 'ab<|"|>'];
    expect(texts.filter((one) => matches(least, text(one)))).toEqual(texts.slice(1, 4));
    const names = Array.from({ length: 100 }, (_, i) => [`p${i + 100}`, { type: 'string', maxLength: 250 }]);
    const many = matcherOf(
      'structural_tag',
      guide({ type: 'object', properties: Object.fromEntries(names) }),
    );
    expect(matches(many, `{p101:${text('a'.repeat(250))},p199:${text('')}}`)).toBe(true);
    expect(matches(many, `{p101:${text('a'.repeat(251))}}`)).toBe(false);
  });

  it('have a special token for quotes where the vocabulary does', () => {
    const matcher = matcherOf('structural_tag', guide({ type: 'string' }, { special_quotes: true }));
    const quote = [...specialBytes('<|"|>')];
    expect(matches(matcher, [...quote, ...Buffer.from('a "b"'), ...quote])).toBe(true);
    expect(matches(matcher, [...quote, ...Buffer.from('a<|"|>'), ...quote])).toBe(false);
    expect(matches(matcher, text('a'))).toBe(false);
  });

  it('are read as values that fulfil the schema, whatever is drawn', () => {
    const schema = {
      type: 'object',
      properties: {
        id: {
          anyOf: [
            { type: 'string', pattern: '^[a-c|"<>]{1,3}$' },
            { type: 'integer', minimum: -5 },
          ],
        },
        list: { type: 'array', items: { enum: ['x', 'a, b', 1.5, null] }, minItems: 1, maxItems: 3 },
        map: { type: 'object', additionalProperties: { type: 'boolean' }, maxProperties: 2 },
        name: { type: 'string', minLength: 1, maxLength: 5 },
      },
      required: ['id', 'list', 'map'],
      additionalProperties: false,
    };
    const check = new Ajv({ allowUnionTypes: true }).compile(schema);
    const random = new Random(7);
    for (const more of [{}, { special_quotes: true }]) {
      const matcher = matcherOf('structural_tag', guide(schema, more));
      let ended = 0;
      for (let k = 0; k < draws(20); k++) {
        const bytes: number[] = [];
        let places = matcher.start;
        while (!places.isAccepting && bytes.length < 400) {
          const next = nextOf(matcher, places);
          const fitting = [...next.keys()].filter((byte) => next[byte] !== null);
          const closing = [...Buffer.from('<|">}]'), 0xff].filter((byte) => next[byte] !== null);
          const byte = random.pick(closing.length > 0 && random.chance(0.6) ? closing : fitting);
          bytes.push(byte);
          places = next[byte]!;
        }
        if (!places.isAccepting) continue;
        ended++;
        const written = new TextDecoder('utf-8', { fatal: true }).decode(
          Uint8Array.from(bytes.filter((byte) => byte < 0xfe)),
        );
        const reader = new Gemma4Object(() => null);
        const steps = written.split('').map((unit) => reader.step(unit));
        expect(steps.at(-1)!.scan, written).toBe('last');
        const json = steps.map((step) => step.json).join('');
        expect(check(JSON.parse(json)), `${written}: ${json}`).toBe(true);
      }
      expect(ended).toBeGreaterThan(draws(20) / 4);
    }
  });
});
