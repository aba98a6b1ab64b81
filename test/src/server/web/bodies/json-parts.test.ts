import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  JsonList,
  JsonNumbers,
  JsonObject,
  jsonParts,
} from '../../../../../src/server/web/bodies/json-parts.js';

/** Strings of many lengths, lone halves of characters and signs that are escaped among them. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc
    .tuple(fc.nat(4200), fc.constantFrom('a', '"', '\u{1f986}', '\ud83e', '\udd86', '\u0001'), fc.nat(3))
    .map(([length, sign, shift]) => 'x'.repeat(shift) + sign.repeat(length)),
);
const leaf = fc.oneof(text, fc.double(), fc.boolean(), fc.constant(null));
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(fc.double(), { maxLength: 5 }).map((items) => new JsonNumbers(items)),
    fc
      .array(tie('value'), { maxLength: 5 })
      .map((items) => new JsonList(items.length, (index) => items[index])),
    fc
      .dictionary(fc.string(), fc.oneof(tie('value'), fc.constant(undefined)), { maxKeys: 5 })
      .map((fields) => new JsonObject(fields)),
    fc.dictionary(fc.string(), leaf, { maxKeys: 3 }),
    fc.array(tie('value'), { maxLength: 3 }),
  ),
}));

describe('the parts of a value', () => {
  it('are its JSON', () => {
    fc.assert(
      fc.property(value, (one) => {
        expect([...jsonParts(one)].join('')).toBe(JSON.stringify(one));
      }),
    );
  });

  it.each([
    ['a long text', 'a"\u{1f986}'.repeat(1_000_000)],
    ['many numbers', new JsonNumbers(new Float64Array(300_000).fill(-1.234567890123))],
    ['a long text in an object in a list', new JsonList(3, () => new JsonObject({ x: 'y'.repeat(500_000) }))],
  ])('are short for %s', (_, one) => {
    const parts = [...jsonParts(one)];
    expect(parts.join('') === JSON.stringify(one)).toBe(true);
    expect(Math.max(...parts.map(({ length }) => length))).toBeLessThan(128 * 1024);
  });

  it('are made when they are asked for, each once', () => {
    const made: number[] = [];
    const list = new JsonList(5, (index) => made.push(index));
    const parts = jsonParts(new JsonObject({ list }));
    for (let text = ''; !text.endsWith('2'); ) text += parts.next().value;
    expect(made).toEqual([0, 1]);
    expect([...parts].join('')).toBe(',3,4,5]}');
    expect(made).toEqual([0, 1, 2, 3, 4]);
  });
});
