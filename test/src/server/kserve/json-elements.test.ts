import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { InferError } from '../../../../callbacks/infer/infer-error.js';
import { NumberElements, TextElements } from '../../../../src/server/kserve/json-elements.js';
import { NUMBER_TYPES } from '../../../../src/serving/protocol/number-types.js';
import { draws } from '../../../support/scale.js';

const refusals = {
  ofType: (found: string) => new InferError(`type ${found}`, 'invalid'),
  ofCount: (found: string) => new InferError(found, 'invalid'),
};

/** Reads a list in steps of `step` bytes. */
function inSteps(elements: NumberElements | TextElements, step: number): number[] {
  for (let end = step; !elements.read(end); end += step) expect(end).toBeLessThan(100_000);
  return [...elements.result()];
}

const unitOf = (one: string) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`;
const encode = (list: unknown) => Buffer.from(JSON.stringify(list, null, ' '));

it('reads texts alike in steps of any length, with what is escaped in them', () => {
  const texts = fc.array(fc.string({ unit: 'binary' }), { maxLength: 5 });
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 9 }), (list, step) => {
      const escaped = list.map((text) => `"${text.replaceAll(/[\s\S]/g, unitOf)}"`).join(' ,');
      const parts = list.flatMap((text) => {
        const bytes = Buffer.from(text);
        return [bytes.length, 0, 0, 0, ...bytes];
      });
      expect(inSteps(new TextElements(encode(list), list.length, refusals), step)).toEqual(parts);
      const elements = new TextElements(Buffer.from(`[${escaped}]`), list.length, refusals);
      expect(inSteps(elements, step)).toEqual(parts);
    }),
    { numRuns: draws(80) },
  );
});

it('reads numbers alike in steps of any length', () => {
  // JSON's writer has no -0.
  const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((one) => one + 0);
  const numbers = fc.array(number, { maxLength: 6 });
  fc.assert(
    fc.property(numbers, fc.integer({ min: 1, max: 9 }), (list, step) => {
      const elements = new NumberElements(encode([list]), list.length, NUMBER_TYPES.FP64!, refusals);
      expect(inSteps(elements, step)).toEqual([...new Uint8Array(new Float64Array(list).buffer)]);
    }),
    { numRuns: draws(100) },
  );
});

it.each([
  '[1',
  '[1,',
  '[',
  '[[1]',
  '[1]]',
  '[,1]',
  '[1 2]',
  '[1,]',
  '1,2',
  '[1}',
  '[01]',
  '[1.]',
  '[.5]',
  '[+1]',
  '[1e]',
  '[--1]',
  '[0x1]',
])('refuses %s', (text) => {
  const elements = new NumberElements(Buffer.from(text), 1, NUMBER_TYPES.FP64!, refusals);
  expect(() => inSteps(elements, 2)).toThrow(/failed to parse|^more than/);
});

it.each(['["a]', '["\\x"]', '["\\u12"]', '["\\u12g4"]', '["\n"]', '["a""b"]', '[a]', '["\\'])(
  'refuses %j',
  (text) => {
    const elements = new TextElements(Buffer.from(text), 1, refusals);
    expect(() => inSteps(elements, 2)).toThrow(/failed to parse|^type/);
  },
);
