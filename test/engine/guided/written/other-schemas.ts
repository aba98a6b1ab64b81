import { readFileSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import { toJsonSchema } from '@valibot/to-json-schema';
import * as v from 'valibot';
import type { WrittenSchema } from './judge.js';

const fixture = (name: string) =>
  JSON.parse(
    readFileSync(new URL(`../../../fixtures/schemas/${name}.json`, import.meta.url), 'utf8'),
  ) as unknown;

const VALIBOT: Record<string, [v.GenericSchema, ...unknown[]]> = {
  email: [v.pipe(v.string(), v.email(), v.maxLength(100)), 'ada@example.com'],
  url: [v.pipe(v.string(), v.url()), 'https://example.com'],
  uuid: [v.pipe(v.string(), v.uuid()), '123e4567-e89b-42d3-a456-426614174000'],
  'iso date': [v.pipe(v.string(), v.isoDate()), '2026-02-03'],
  'iso timestamp': [v.pipe(v.string(), v.isoTimestamp()), '2026-02-03T12:30:15Z'],
  pattern: [v.pipe(v.string(), v.regex(/^[a-z]+$/), v.minLength(2), v.maxLength(9)), 'abc'],
  integer: [v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(9)), 5],
  multiple: [v.pipe(v.number(), v.multipleOf(0.5)), 1.5],
  picklist: [v.picklist(['a', 'b']), 'b'],
  object: [
    v.object({ a: v.string(), b: v.optional(v.number(), 3), c: v.nullable(v.boolean()) }),
    { a: 'x', c: null },
  ],
  'strict object': [v.strictObject({ a: v.string() }), { a: 'x' }],
  'loose object': [v.looseObject({ a: v.string() }), { a: 'x' }],
  'object with rest': [v.objectWithRest({ a: v.string() }, v.number()), { a: 'x', b: 1 }],
  record: [v.record(v.string(), v.number()), { a: 1 }],
  variant: [
    v.variant('t', [v.object({ t: v.literal('a'), n: v.number() }), v.object({ t: v.literal('b') })]),
    { t: 'a', n: 1 },
    { t: 'b' },
  ],
  union: [v.union([v.string(), v.number()]), 'a', 1],
  tuple: [v.tuple([v.string(), v.number()]), ['a', 1]],
  'tuple with rest': [v.tupleWithRest([v.string()], v.boolean()), ['a', true]],
  intersect: [v.intersect([v.object({ a: v.string() }), v.object({ b: v.number() })]), { a: 'x', b: 1 }],
};

const Tree = Type.Recursive((This) => Type.Object({ name: Type.String(), children: Type.Array(This) }), {
  $id: 'Tree',
});

const TYPEBOX: Record<string, [object, ...unknown[]]> = {
  object: [
    Type.Object({ a: Type.String({ minLength: 1 }), b: Type.Optional(Type.Integer({ minimum: 0 })) }),
    { a: 'x' },
  ],
  closed: [Type.Object({ a: Type.String() }, { additionalProperties: false }), { a: 'x' }],
  record: [Type.Record(Type.String(), Type.Number()), { a: 1 }, {}],
  'record of keys': [
    Type.Record(Type.Union([Type.Literal('a'), Type.Literal('b')]), Type.Number()),
    { a: 1, b: 2 },
  ],
  'record of numbers': [Type.Record(Type.Integer(), Type.String()), { '12': 'x' }],
  union: [Type.Union([Type.Literal('a'), Type.Literal(2), Type.Null()]), 'a', 2, null],
  intersect: [
    Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.Number() })], {
      unevaluatedProperties: false,
    }),
    { a: 'x', b: 1 },
  ],
  tuple: [Type.Tuple([Type.String(), Type.Boolean()]), ['a', true]],
  'unique list': [
    Type.Array(Type.Union([Type.Literal('a'), Type.Literal('b'), Type.Literal('c')]), { uniqueItems: true }),
    ['c', 'a'],
  ],
  contains: [Type.Array(Type.Integer(), { contains: Type.Literal(7), maxItems: 4 }), [1, 7]],
  recursive: [Tree, { name: 'a', children: [{ name: 'b', children: [] }] }],
  template: [
    Type.TemplateLiteral([Type.Literal('on-'), Type.Union([Type.Literal('a'), Type.Literal('b')])]),
    'on-a',
  ],
  string: [Type.String({ format: 'date-time', maxLength: 30 }), '2026-02-03T12:30:15Z'],
  not: [Type.Intersect([Type.String({ maxLength: 5 }), Type.Not(Type.Literal('no'))]), 'yes'],
  partial: [
    Type.Partial(Type.Object({ a: Type.String(), b: Type.Number() }), { minProperties: 1 }),
    { b: 1 },
  ],
};

const ofLibrary = (library: string, schemas: Record<string, [object, ...unknown[]]>): WrittenSchema[] =>
  Object.entries(schemas).map(([name, [schema, ...values]]) => ({
    name: `${library}: ${name}`,
    // As JSON, since symbols are of no schema.
    schema: JSON.parse(JSON.stringify(schema)) as object,
    draft: '2019-09',
    values,
  }));

export const VALIBOT_SCHEMAS = ofLibrary(
  'valibot',
  Object.fromEntries(
    Object.entries(VALIBOT).map(([name, [schema, ...values]]) => [
      name,
      [toJsonSchema(schema, { typeMode: 'input' }), ...values],
    ]),
  ),
);
export const TYPEBOX_SCHEMAS = ofLibrary('typebox', TYPEBOX);

export const PYDANTIC_SCHEMAS: readonly WrittenSchema[] = Object.entries(
  fixture('pydantic') as Record<string, { schema: object; values: unknown[] }>,
).map(([name, model]) => ({ name: `pydantic: ${name}`, ...model }));

/** Input schemas of the tools that published MCP servers list. */
export const MCP_SCHEMAS: readonly WrittenSchema[] = Object.entries(
  fixture('mcp-tools') as Record<string, Record<string, object>>,
).flatMap(([server, tools]) =>
  Object.entries(tools).map(([tool, schema]) => ({ name: `mcp: ${server} ${tool}`, schema, values: [] })),
);
