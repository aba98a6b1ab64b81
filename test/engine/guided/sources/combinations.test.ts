import { describe, expect, it } from 'vitest';
import { matcherOf, matches } from '../follow.js';
import { faultsOf } from '../written/judge.js';

/** Which of these values the guide of a schema accepts. */
function accepted(schema: unknown, values: readonly unknown[]): unknown[] {
  const matcher = matcherOf('json_schema', schema);
  return values.filter((value) => matches(matcher, JSON.stringify(value)));
}

const OPTIONAL = { a: { type: 'null' }, b: { type: 'null' }, c: { type: 'null' } };
const [A, B, C] = [{ a: null }, { b: null }, { c: null }];
/** A condition, whose keyword biome takes for a promise's. */
const condition = (test: object, holds: object, otherwise?: object) =>
  Object.fromEntries([['if', test], ['then', holds], ...(otherwise ? [['else', otherwise]] : [])]);

describe('keywords together', () => {
  it.each<[string, object, unknown[], unknown[]]>([
    [
      'pattern with lengths',
      { pattern: '^[a-z]+$', minLength: 2, maxLength: 3 },
      ['ab', 'abc'],
      ['a', 'abcd', 'a1'],
    ],
    [
      'pattern with format',
      { format: 'date', pattern: '^2024' },
      ['2024-02-29'],
      ['2023-01-01', '2024-02-30'],
    ],
    [
      'several patterns',
      { allOf: [{ pattern: 'a' }, { pattern: 'b$' }, { maxLength: 3 }] },
      ['ab', 'xab'],
      ['ba', 'xxab'],
    ],
    ['several formats', { allOf: [{ format: 'hostname' }, { format: 'ipv4' }] }, ['1.2.3.4'], ['a.b']],
    ['format with lengths', { format: 'uri', maxLength: 12 }, ['http://a.b/c'], ['http://a.b/cd', 'a']],
    ['enum with lengths', { enum: ['a', 'bb', 'ccc', 4], maxLength: 2 }, ['a', 'bb', 4], ['ccc']],
    ['enum with bounds', { enum: [1, 2.5, 4], type: 'number', minimum: 2, multipleOf: 0.5 }, [2.5, 4], [1]],
    ['const with a pattern', { allOf: [{ const: 'ab' }, { pattern: '^a' }] }, ['ab'], ['a']],
    [
      'enum of objects',
      { enum: [{ k: 1 }, { k: 'x' }], properties: { k: { type: 'string' } } },
      [{ k: 'x' }],
      [{ k: 1 }],
    ],
    [
      'multipleOf of two',
      { allOf: [{ multipleOf: 0.4 }, { multipleOf: 0.6, type: 'number' }] },
      [1.2, 12],
      [0.4, 0.6, 1],
    ],
    [
      'decimals within bounds',
      { type: 'number', multipleOf: 0.25, minimum: -1, maximum: 1 },
      [-0.75, 0, 1],
      [0.3, 1.25],
    ],
    [
      'a long text',
      { type: 'string', minLength: 3, maxLength: 25_000 },
      ['abc', 'x'.repeat(25_000)],
      ['ab', 'x'.repeat(25_001)],
    ],
  ])('%s', (_, schema, valid, invalid) => {
    expect(accepted(schema, [...valid, ...invalid])).toEqual(valid);
  });

  it.each<[string, object, unknown[], unknown[]]>([
    [
      'not with constants',
      { type: 'string', not: { enum: ['no', 'never'] } },
      ['yes', 'nope', ''],
      ['no', 'never'],
    ],
    [
      'not with a pattern',
      { type: 'string', not: { pattern: '^x' }, maxLength: 3 },
      ['a', 'ax'],
      ['x', 'xa'],
    ],
    ['not with a type', { not: { type: ['null', 'object'] } }, ['a', 1, true], [null, {}]],
    [
      'not with numbers',
      { type: 'integer', minimum: 0, maximum: 9, not: { enum: [3, 4] } },
      [0, 2, 5, 9],
      [3, 4],
    ],
    [
      'not with properties',
      { type: 'object', properties: OPTIONAL, not: { required: ['a', 'b'] } },
      [A, B, C, {}],
      [{ ...A, ...B }],
    ],
    [
      'if',
      {
        properties: { k: { enum: ['x', 'y'] }, v: { type: 'null' } },
        required: ['k'],
        ...condition({ properties: { k: { const: 'x' } } }, { required: ['v'] }),
      },
      [{ k: 'x', v: null }, { k: 'y' }],
      [{ k: 'x' }],
    ],
    [
      'if with else',
      { type: 'integer', ...condition({ minimum: 10 }, { multipleOf: 10 }, { maximum: 3 }) },
      [3, 20],
      [4, 11],
    ],
    [
      'dependentRequired',
      { properties: OPTIONAL, dependentRequired: { a: ['b'] } },
      [{ ...A, ...B }, B, {}],
      [A],
    ],
    [
      'dependencies',
      { properties: OPTIONAL, dependencies: { a: ['b'], c: { required: ['a'] } } },
      [{ ...A, ...B, ...C }, B],
      [C, { ...A, ...C }],
    ],
    [
      'contains',
      { type: 'array', items: { type: 'integer' }, contains: { const: 7 }, minContains: 2, maxItems: 3 },
      [
        [7, 7],
        [7, 1, 7],
      ],
      [[7], [7, 7, 7, 7]],
    ],
    [
      'uniqueItems',
      { type: 'array', items: { enum: ['a', 'b', 'c'] }, uniqueItems: true, minItems: 2 },
      [
        ['c', 'a'],
        ['a', 'b', 'c'],
      ],
      [['a'], ['a', 'a']],
    ],
    [
      'uniqueItems of flags',
      { type: 'array', items: { type: ['boolean', 'null'] }, uniqueItems: true },
      [[], [true, null, false]],
      [[true, true]],
    ],
    [
      'minProperties',
      { properties: OPTIONAL, minProperties: 1, maxProperties: 2 },
      [A, { ...B, ...C }],
      [{}, { ...A, ...B, ...C }],
    ],
    [
      'patternProperties',
      { patternProperties: { '^n': { type: 'integer' }, s$: { minimum: 5 } }, additionalProperties: false },
      [{ na: 1, xs: 6, ns: 5 }, {}],
      [{ ns: 4 }, { x: 1 }],
    ],
    [
      'propertyNames',
      {
        type: 'object',
        propertyNames: { pattern: '^[a-c]+$', maxLength: 2 },
        additionalProperties: { type: 'null' },
      },
      [A, { ab: null }],
      [{ abc: null }, { d: null }],
    ],
    [
      'propertyNames with values',
      { propertyNames: { enum: ['b', 'a'] }, additionalProperties: { type: 'null' } },
      [A, B, {}],
      [C],
    ],
    [
      'unevaluatedProperties',
      {
        allOf: [{ properties: { a: { type: 'null' } } }, { properties: { b: { type: 'null' } } }],
        unevaluatedProperties: false,
      },
      [A, { ...A, ...B }],
      [C],
    ],
    [
      'a tuple of draft 4',
      { items: [{ const: 1 }], additionalItems: { const: 2 } },
      [[1], [1, 2, 2]],
      [[2], [1, 1]],
    ],
    [
      'oneOf that overlaps',
      {
        oneOf: [
          { type: 'string', maxLength: 4 },
          { type: 'string', minLength: 2 },
        ],
      },
      ['a', 'abcde'],
      ['ab', 'abcd'],
    ],
  ])('%s', (_, schema, valid, invalid) => {
    expect(accepted(schema, [...valid, ...invalid])).toEqual(valid);
    expect(
      faultsOf({ name: '', schema, values: valid, draft: 'items' in schema ? '2019-09' : '2020-12' }, 4),
    ).toEqual([]);
  });

  it('items of a longer list, each once, come in the order of the list', () => {
    const schema = {
      type: 'array',
      items: { enum: [...'abcdefghijklmnop'] },
      uniqueItems: true,
      maxItems: 12,
    };
    expect(
      accepted(schema, [['a', 'p'], [...'abcdefghijkl'], ['p', 'a'], ['a', 'a'], [...'abcdefghijklm']]),
    ).toEqual([['a', 'p'], [...'abcdefghijkl']]);
  });

  it('keywords that restrict nothing cost nothing', () => {
    const free = {
      patternProperties: {},
      dependentRequired: {},
      uniqueItems: false,
      not: false,
      $anchor: 'x',
    };
    expect(
      accepted({ ...free, propertyNames: { type: 'string' }, type: 'object' }, [{ x: [1] }]),
    ).toHaveLength(1);
    expect(accepted({ type: 'string', format: 'starts_with', pattern: '^a' }, ['ab', 'b'])).toEqual(['ab']);
  });

  it('branches of oneOf are told apart by a property with constants, which is then there', () => {
    const branch = (kind: string) => ({
      type: 'object',
      properties: { kind: { const: kind, default: kind } },
    });
    const schema = { oneOf: [branch('a'), branch('b')], discriminator: { propertyName: 'kind' } };
    expect(accepted(schema, [{ kind: 'a' }, { kind: 'b' }, {}])).toEqual([{ kind: 'a' }, { kind: 'b' }]);
  });

  it('schemas are found by $id and $anchor', () => {
    const list = { $id: 'list', type: 'array', items: { $ref: 'list' } };
    expect(
      accepted(
        { $defs: { list, n: { $anchor: 'n', type: 'null' } }, anyOf: [{ $ref: 'list' }, { $ref: '#n' }] },
        [[[]], null, 1],
      ),
    ).toEqual([[[]], null]);
  });
});

describe('combinations that take too much', () => {
  it.each<[string, object]>([
    ['pattern together with minLength or maxLength', { pattern: '^(a[^]{0,400}){50}$', maxLength: 9000 }],
    ['pattern takes', { allOf: [{ pattern: 'a.{20}$' }, { pattern: 'b.{19}$' }, { pattern: 'c.{21}$' }] }],
    ['contains is not supported', { type: 'array', contains: { const: 1 }, minContains: 90, maxItems: 9000 }],
    ['patternProperties has 5 patterns', { patternProperties: { a: {}, b: {}, c: {}, d: {}, e: {} } }],
    [
      'make more than 2000 alternatives',
      {
        properties: {},
        dependentRequired: Object.fromEntries([...'abcdefghijkl'].map((name) => [name, ['z']])),
      },
    ],
    ['values that break the keyword format', { not: { type: 'string', format: 'date' } }],
  ])('are refused by name: %s', (why, schema) => {
    expect(() => matcherOf('json_schema', schema)).toThrow(why);
  });
});
