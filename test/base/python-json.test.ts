import { expect, it } from 'vitest';
import { parsePythonJson } from '../../base/python-json.js';

it('reads what Python writes: a byte order mark, and numbers that JSON has no words for', () => {
  expect(parsePythonJson('\ufeff{"a":1}')).toEqual({ a: 1 });
  expect(parsePythonJson('{"a":[0.0, Infinity,-Infinity, NaN],"NaN":"-Infinity \\" NaN"}')).toEqual({
    a: [0, Infinity, -Infinity, null],
    NaN: '-Infinity " NaN',
  });
});

it('says what is wrong with a text that is no JSON either way', () => {
  expect(() => parsePythonJson('{"a":Infinite}')).toThrow(SyntaxError);
  expect(() => parsePythonJson('{"a":Infinity')).toThrow(SyntaxError);
});

it('takes time in proportion to the length of the text', () => {
  const text = `${'"'.repeat(200_000)}NaN${'\\'.repeat(200_000)}`;
  expect(() => parsePythonJson(text)).toThrow(SyntaxError);
});
