import { describe, expect, it } from 'vitest';
import { MAX_GUIDE_LENGTH } from '../../../../callbacks/guide.js';
import { matcherOf, matches } from '../follow.js';

function accepted(schema: unknown, texts: readonly string[]): string[] {
  const matcher = matcherOf('json_schema', schema);
  return texts.filter((text) => matches(matcher, text));
}

const JSON_TEXTS = [
  '1',
  '-1',
  '0',
  '-0',
  '1.5',
  '1e5',
  '"a"',
  'true',
  'null',
  '[]',
  '[1, 2]',
  '{}',
  '{"a": 1}',
  '01',
  '[1,]',
  'tru',
];

describe('a JSON schema', () => {
  it('that says nothing leaves all of JSON', () => {
    const valid = JSON_TEXTS.slice(0, -3);
    for (const schema of [true, {}, { title: 'x', 'x-own': 1 }])
      expect(accepted(schema, JSON_TEXTS)).toEqual(valid);
    expect(accepted({ type: 'object' }, JSON_TEXTS)).toEqual(['{}', '{"a": 1}']);
    expect(accepted({ type: ['integer', 'null'] }, JSON_TEXTS)).toEqual(['1', '-1', '0', 'null']);
  });

  it('puts properties in their order, and leaves out those that may be', () => {
    const schema = {
      properties: { a: { type: 'null' }, b: { type: 'null' }, c: { type: 'null' } },
      required: ['b'],
    };
    expect(
      accepted(schema, [
        '{"b":null}',
        '{"a":null, "b":null}',
        '{"b":null,"c":null}',
        '{"a":null,"b":null,"c":null}',
        '{"b":null,"a":null}',
        '{"a":null}',
        '{}',
        '{"b":null,"d":null}',
      ]),
    ).toEqual(['{"b":null}', '{"a":null, "b":null}', '{"b":null,"c":null}', '{"a":null,"b":null,"c":null}']);
  });

  it('lets additional properties have no name that is taken', () => {
    const schema = { properties: { ab: { type: 'null' } }, additionalProperties: { type: 'integer' } };
    expect(
      accepted(schema, [
        '{"ab":null}',
        '{"ab":1}',
        '{"a":1}',
        '{"abc":1, "b":2}',
        '{"":1}',
        '{"\\u0061b":1}',
        '{"ab":null,"x":1}',
      ]),
    ).toEqual(['{"ab":null}', '{"a":1}', '{"abc":1, "b":2}', '{"":1}', '{"ab":null,"x":1}']);
  });

  it('counts code points of strings, however they are written', () => {
    const schema = { type: 'string', minLength: 2, maxLength: 2 };
    expect(
      accepted(schema, ['"ab"', '"😀é"', '"\\u0041\\n"', '"a"', '"abc"', '"\\ud83d\\ude00"', '"a\tb"']),
    ).toEqual(['"ab"', '"😀é"', '"\\u0041\\n"']);
  });

  it('keeps numbers within bounds', () => {
    const numbers = [
      '-3',
      '-2.5',
      '-2',
      '-1',
      '0',
      '0.5',
      '0.499',
      '0.501',
      '1',
      '1.0',
      '9',
      '10',
      '10.0',
      '10.01',
      '11',
      '100',
    ];
    const within = (low: number, high: number) => (text: string) =>
      Number(text) >= low && Number(text) <= high;
    expect(accepted({ type: 'number', minimum: -2, maximum: 10 }, numbers)).toEqual(
      numbers.filter(within(-2, 10)),
    );
    expect(accepted({ type: 'number', minimum: 0.5 }, numbers)).toEqual(numbers.filter(within(0.5, 1000)));
    expect(accepted({ type: 'number', exclusiveMinimum: 0.5, exclusiveMaximum: 10 }, numbers)).toEqual([
      '0.501',
      '1',
      '1.0',
      '9',
    ]);
    expect(accepted({ type: 'integer', minimum: -2, maximum: 10 }, numbers)).toEqual([
      '-2',
      '-1',
      '0',
      '1',
      '9',
      '10',
    ]);
    expect(accepted({ type: 'integer', multipleOf: 5 }, numbers)).toEqual(['0', '10', '100']);
    expect(accepted({ type: 'integer', exclusiveMaximum: -2 }, numbers)).toEqual(['-3']);
    expect(accepted({ type: 'number', maximum: -2.5 }, numbers)).toEqual(['-3', '-2.5']);
  });

  it('takes bounds that no number comes near for none', () => {
    const schema = { type: 'integer', minimum: -Number.MAX_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };
    const numbers = ['-999999999999999', '-1', '0', '7', '999999999999999'];
    expect(accepted(schema, numbers)).toEqual(numbers);
    expect(accepted({ type: 'number', minimum: 0, maximum: 1e300 }, ['-1', '0', '5.5'])).toEqual([
      '0',
      '5.5',
    ]);
  });

  it('may refer to itself', () => {
    const schema = {
      $ref: '#/$defs/node',
      $defs: {
        node: {
          type: 'object',
          properties: { next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
          required: ['next'],
        },
      },
    };
    const nested = (depth: number) => `${'{"next":'.repeat(depth)}null${'}'.repeat(depth)}`;
    expect(accepted(schema, [nested(1), nested(300), '{"next":{}}', 'null'])).toHaveLength(2);
    expect(accepted({ type: 'array', items: { $ref: '#' } }, ['[]', '[[],[[]]]', '[1]'])).toHaveLength(2);
  });

  it('may put its parts together', () => {
    const part = (name: string) => ({
      type: 'object',
      properties: { [name]: { type: 'null' } },
      required: [name],
    });
    expect(accepted({ allOf: [part('a'), part('b')] }, ['{"a":null,"b":null}', '{"a":null}'])).toHaveLength(
      1,
    );
    expect(
      accepted({ ...part('a'), anyOf: [part('b'), part('c')] }, [
        '{"a":null,"b":null}',
        '{"a":null,"c":null}',
        '{"a":null}',
      ]),
    ).toHaveLength(2);
    expect(
      accepted({ allOf: [{ type: ['integer', 'string'] }, { type: 'number', minimum: 3 }] }, [
        '3',
        '2',
        '"a"',
        '3.5',
      ]),
    ).toEqual(['3']);
    expect(accepted({ oneOf: [{ type: 'null' }, { const: 'x' }] }, ['null', '"x"', '"y"'])).toEqual([
      'null',
      '"x"',
    ]);
  });

  it('may list values', () => {
    expect(accepted({ enum: ['a', 1, null, { k: [1] }] }, ['"a"', '1', 'null', '{"k":[1]}', '1.0'])).toEqual([
      '"a"',
      '1',
      'null',
      '{"k":[1]}',
    ]);
    expect(accepted({ type: 'string', enum: ['a', 1] }, ['"a"', '1'])).toEqual(['"a"']);
    expect(accepted({ const: 'a"b' }, ['"a\\"b"'])).toHaveLength(1);
  });

  it('counts items, and tells those of a tuple apart', () => {
    expect(
      accepted({ type: 'array', items: { const: 1 }, minItems: 1, maxItems: 2 }, [
        '[]',
        '[1]',
        '[1,1]',
        '[1,1,1]',
      ]),
    ).toEqual(['[1]', '[1,1]']);
    const tuple = { prefixItems: [{ const: 1 }, { const: 2 }], items: { const: 3 }, minItems: 1 };
    expect(accepted(tuple, ['[]', '[1]', '[1,2]', '[1,2,3,3]', '[2]', '[1,3]'])).toEqual([
      '[1]',
      '[1,2]',
      '[1,2,3,3]',
    ]);
    expect(accepted({ ...tuple, items: false, maxItems: 1 }, ['[1]', '[1,2]'])).toEqual(['[1]']);
  });

  it('may have items that are all different, of as few values as one', () => {
    const texts = ['[]', '["a"]', '["a", "a"]', '["b", "a"]', '["a", "b"]', '["b", "b"]'];
    const unique = (values: string[], more = {}) => ({
      ...{ type: 'array', items: { enum: values }, uniqueItems: true },
      ...more,
    });
    expect(accepted(unique(['a']), texts)).toEqual(['[]', '["a"]']);
    expect(accepted(unique(['a'], { minItems: 1 }), texts)).toEqual(['["a"]']);
    expect(accepted(unique(['a', 'b']), texts)).toEqual(['[]', '["a"]', '["b", "a"]', '["a", "b"]']);
    expect(accepted(unique(['a', 'b'], { maxItems: 0 }), texts)).toEqual(['[]']);
  });

  it.each([
    // Beyond 10,000 characters they are counted in thousands.
    [10_500, 10_510],
    [10_500, 11_500],
    [0, 12_000],
    [10, 12_020],
    [11_000, null],
  ])('has strings of %i to %s characters', (minLength, maxLength) => {
    const schema = { type: 'string', minLength, ...(maxLength !== null && { maxLength }) };
    const matcher = matcherOf('json_schema', schema);
    const most = maxLength ?? Number.POSITIVE_INFINITY;
    const last = Math.min(most, 13_000);
    for (const from of [minLength, minLength + 1000, last - (last % 1000), last])
      for (const length of [from - 1, from, from + 1].filter((one) => one >= 0))
        expect(matches(matcher, `"${'x'.repeat(length)}"`), `${length} characters`).toBe(
          length >= minLength && length <= most,
        );
  });

  it('puts patterns of names together, unless one schema closes its names', () => {
    const both = (more: object) => ({
      allOf: [
        { type: 'object', patternProperties: { '^a': { type: 'integer' } } },
        { type: 'object', patternProperties: { '^b': { type: 'null' } }, ...more },
      ],
    });
    const texts = ['{"a": 1}', '{"b": null}', '{"a": null}', '{"b": 1}'];
    for (const more of [{}, { additionalProperties: true }])
      expect(accepted(both(more), texts)).toEqual(['{"a": 1}', '{"b": null}']);
    for (const additionalProperties of [false, { type: 'integer' }])
      expect(() => matcherOf('json_schema', both({ additionalProperties }))).toThrow(
        'patternProperties of two schemas, one of them with additionalProperties, are not supported',
      );
  });

  it('lets white space have an end', () => {
    expect(
      accepted({ type: 'object' }, [
        '{\n  "a":\n   1\n}',
        `{"a":${' '.repeat(40)}1}`,
        '{"a":\n\n1}',
        ' {}',
        '{} ',
      ]),
    ).toHaveLength(1);
  });

  it.each([
    [{ not: {} }, 'No text matches'],
    [
      { not: { multipleOf: 3 } },
      'its root: values that break the keyword multipleOf, as not asks for, are not supported',
    ],
    [
      { properties: { a: { if: { uniqueItems: true }, else: true } } },
      '/properties/a: values that break the keyword uniqueItems, as if asks for',
    ],
    [{ patternProperties: { '(?<=a)': {} } }, 'look-behind is not supported'],
    [{ type: 'array', uniqueItems: true }, 'uniqueItems is supported only where items is an enum'],
    [{ contains: { const: 1 }, maxContains: 2 }, 'the keyword maxContains is not supported'],
    [{ $dynamicRef: '#a' }, 'the keyword $dynamicRef is not supported'],
    [{ minLenght: 1 }, 'the keyword minLenght is not known; minLength is'],
    [{ type: 'text' }, 'type is "text"; one of string, number'],
    [{ type: 'string', format: 'iban' }, 'the format "iban" is not supported; date,'],
    [{ pattern: '(?<=a)' }, 'look-behind is not supported'],
    [{ $ref: 'https://x.org/s.json' }, 'only references within the schema'],
    [{ $ref: '#/$defs/none' }, 'there is no such place'],
    [{ $ref: '#' }, 'No text matches'],
    [{ allOf: [{ $ref: '#' }, { type: 'null' }] }, 'or back to itself'],
    [{ anyOf: [{ $ref: '#' }, { type: 'null' }] }, 'left-recursive'],
    [
      { oneOf: [{ type: 'integer' }, { type: 'number' }] },
      'two branches of oneOf could hold for the same value',
    ],
    [{ multipleOf: 1024 }, 'multipleOf is 1024; whole numbers from 1 to 1000, and as many times 0.1'],
    [{ minimum: 5, maximum: 4 }, 'No text matches'],
    [{ minItems: 3, maxItems: 2 }, 'maxItems is 2, less than minItems, 3'],
    [{ minLength: 20_000_000 }, 'at most 10000000 is supported'],
    [{ maxItems: 20_000 }, 'at most 10000 is supported'],
    [{ minProperties: 2 }, 'minProperties is 2'],
    [{ type: 'string', minLength: -1 }, 'minLength is -1; a whole number'],
    [false, 'No text matches'],
    [[], 'a schema is an object or a boolean'],
    [{ minimum: 1e300 }, 'more than 15 digits'],
  ])('%j is refused: %s', (schema, why) => {
    expect(() => matcherOf('json_schema', schema)).toThrow(why);
  });

  it('may have hundreds of strings of one format or pattern: each is one rule', () => {
    const kinds = [{ format: 'uri' }, { format: 'email' }, { pattern: '^[a-z]{1,64}$' }];
    const names = Array.from({ length: 300 }, (_, i) => `p${i}`);
    const properties = Object.fromEntries(
      names.map((name, i) => [name, { type: 'string', ...kinds[i % 3] }]),
    );
    const matcher = matcherOf('json_schema', { type: 'object', properties, additionalProperties: false });
    expect(matches(matcher, '{"p0": "https://a.b", "p1": "a@b.c", "p2": "geese"}')).toBe(true);
    expect(matches(matcher, '{"p0": "geese"}')).toBe(false);
  });

  it('that is too long, too deep, or too large is refused', () => {
    expect(() => matcherOf('json_schema', { description: 'x'.repeat(MAX_GUIDE_LENGTH) })).toThrow(
      'characters long',
    );
    let deep: object = {};
    for (let i = 0; i < 3000; i++) deep = { items: deep };
    expect(() => matcherOf('json_schema', deep)).toThrow('nested deeper than 200');
    const wide = { anyOf: Array.from({ length: 60 }, (_, i) => ({ const: i })) };
    expect(() => matcherOf('json_schema', { allOf: [wide, wide, { ...wide, type: 'array' }] })).toThrow(
      'make more than 2000 alternatives',
    );
    expect(() => matcherOf('json_schema', { prefixItems: Array(21_000).fill({}) })).toThrow(
      'more than 20000 schemas',
    );
  });
});
