import { describe, expect, it } from 'vitest';
import { isOneOf, typesOf, typesOfParameter } from '../../../../src/generation/tools/parameter-types.js';

const typesIn = (schema: unknown) => {
  const types = typesOf(schema, 0);
  return types === null ? null : [...types];
};

/** A schema within as many choices. */
const nested = (schema: object, depth: number): object =>
  depth === 0 ? schema : { anyOf: [nested(schema, depth - 1)] };

describe('types of an argument', () => {
  it.each<[unknown, string[] | null]>([
    [{ type: 'string' }, ['string']],
    [{ type: ['integer', 'null'] }, ['integer', 'null']],
    [{ const: 'a' }, ['string']],
    [{ const: null }, ['null']],
    [{ const: [1] }, ['array']],
    [{ const: 0 }, ['number']],
    [{ const: false }, ['boolean']],
    [{ enum: ['a', 1, null, [], {}] }, ['string', 'number', 'null', 'array', 'object']],
    [{ anyOf: [{ type: 'string' }, { const: null }] }, ['string', 'null']],
    [{ oneOf: [{ type: 'string' }, { anyOf: [{ type: 'array' }] }] }, ['string', 'array']],
    // The type says more than what else is there.
    [{ type: 'string', enum: [1] }, ['string']],
    // Any type, and what is no schema of a type.
    [{ anyOf: [{ type: 'string' }, {}] }, null],
    [{ anyOf: 'string' }, null],
    [{}, null],
    [true, null],
    [null, null],
  ])('%j: %j', (schema, types) => {
    expect(typesIn(schema)).toEqual(types);
  });

  it('are followed through eight choices within each other', () => {
    expect(typesIn(nested({ type: 'string' }, 8))).toEqual(['string']);
    expect(typesIn(nested({ type: 'string' }, 9))).toBeNull();
  });

  it('are those of its own schema, and of no inherited name', () => {
    const properties = { a: { type: 'string' } };
    const tool = { name: 'f', parameters: { type: 'object', properties } };
    expect([...typesOfParameter(tool, 'a')!]).toEqual(['string']);
    expect(typesOfParameter(tool, 'b')).toBeNull();
    expect(typesOfParameter(tool, 'constructor')).toBeNull();
    expect(typesOfParameter({ name: 'f', parameters: {} }, 'a')).toBeNull();
    expect(typesOfParameter({ name: 'f' }, 'a')).toBeNull();
  });

  it('allow a whole number where a number or an integer may stand', () => {
    expect(isOneOf(5, new Set(['number']))).toBe(true);
    expect(isOneOf(5, new Set(['integer']))).toBe(true);
    expect(isOneOf(5.5, new Set(['integer']))).toBe(false);
    expect(isOneOf(5.5, new Set(['number']))).toBe(true);
    expect(isOneOf('5', new Set(['integer', 'number']))).toBe(false);
    expect(isOneOf(null, new Set(['object']))).toBe(false);
    expect(isOneOf([], new Set(['object']))).toBe(false);
  });
});
