import { describe, expect, it } from 'vitest';
import { jsonSchemaGrammar } from '../../../../engine/guided/sources/json-schema.js';
import { lenientSchema } from '../../../../engine/guided/sources/lenient-schema.js';
import type { JsonValue } from '../../../../engine/guided/sources/schema-keywords.js';

describe('a schema that is a wish', () => {
  it.each<[string, JsonValue, JsonValue]>([
    ['unknown keywords', { type: 'string', nullable: true, unheard: {} }, { type: 'string' }],
    ['a bound of draft 4', { minimum: 1, exclusiveMinimum: true }, { exclusiveMinimum: 1 }],
    ['another', { maximum: 1, exclusiveMaximum: false }, { maximum: 1 }],
    [
      'all of them, wherever a schema is',
      {
        properties: { nullable: { nullable: true }, a: { items: { x: 1 }, prefixItems: [{ x: 1 }] } },
        additionalProperties: { x: 1 },
        $defs: { x: { x: 1 } },
        anyOf: [{ x: 1 }, true],
        items: [{ x: 1 }],
      },
      {
        properties: { nullable: {}, a: { items: {}, prefixItems: [{}] } },
        additionalProperties: {},
        $defs: { x: {} },
        anyOf: [{}, true],
        items: [{}],
      },
    ],
  ])('loses %s', (_, schema, kept) => {
    expect(lenientSchema(schema)).toEqual(kept);
    jsonSchemaGrammar(kept);
    expect(() => jsonSchemaGrammar(schema)).toThrow();
  });

  it.each<[string, JsonValue]>([
    ['values that look like schemas', { enum: [{ nullable: 1 }], const: { x: 1 }, default: { x: 1 } }],
    ['formats', { type: 'string', format: 'phone' }],
    ['uniqueItems', { type: 'array', uniqueItems: true }],
    ['notes', { title: 'a', description: 'b', 'x-mine': 1 }],
    ['what is refused', { not: { const: 1 }, uniqueItems: 'yes', format: 5, exclusiveMinimum: 'a' }],
    ['a name of every object', JSON.parse('{"properties":{"__proto__":{"type":"string"}}}') as JsonValue],
    ['no schema', 5],
  ])('keeps %s', (_, schema) => {
    expect(JSON.stringify(lenientSchema(schema))).toBe(JSON.stringify(schema));
  });
});
