import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonScanner, type Scan } from '../../../../src/generation/tools/json-scanner.js';
import { draws } from '../../../support/scale.js';

/** Role of the last character of a text that is read up to there, or the first one that ends the value. */
function scan(text: string): { scan: Scan; read: number } {
  const scanner = new JsonScanner();
  for (let i = 0; i < text.length; i++) {
    const role = scanner.step(text.charAt(i));
    if (role !== 'more') return { scan: role, read: i + 1 };
  }
  return { scan: 'more', read: text.length };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** True where a text is one value, with white space around it; a number ends with the space. */
function isWhole(text: string): boolean {
  const { scan: role, read } = scan(`${text} `);
  return (
    (role === 'last' || role === 'behind') && text.slice(role === 'last' ? read : read - 1).trim() === ''
  );
}

describe('the scanner of JSON', () => {
  it('takes for a value what JSON.parse takes, and nothing else', () => {
    const value = fc.jsonValue({ maxDepth: 3 }).map((one) => JSON.stringify(one));
    const change = fc.record({
      at: fc.nat(40),
      leftOut: fc.nat(2),
      put: fc.constantFrom(
        '',
        '"',
        '{',
        '}',
        '[',
        ']',
        ',',
        ':',
        '0',
        '-',
        '.',
        'e',
        '+',
        '\\',
        'u',
        'n',
        ' ',
        '\n',
        '\u0001',
      ),
    });
    fc.assert(
      fc.property(value, fc.array(change, { maxLength: 2 }), (whole, changes) => {
        let text = whole;
        for (const { at, leftOut, put } of changes) text = text.slice(0, at) + put + text.slice(at + leftOut);
        expect(isWhole(text), text).toBe(isJson(text));
      }),
      { numRuns: draws(1000) },
    );
  });

  it.each([
    '"\\"\\\\\\/\\b\\f\\n\\r\\t\\uAbC9"',
    '[-0, 1, 10, 1.5, 1e5, 1E-5, 1.25e+10, true, false, null, "", {}, []]',
    '{"a": {"b": [1, {"c": null}]}, "d": "}"}',
    ' \t\r\n{ "a" : 1 , "b" : [ ] } ',
  ])('reads %s to its end', (text) => {
    expect(isJson(text)).toBe(true);
    expect(isWhole(text)).toBe(true);
  });

  it.each([
    ...['"\\q"', '"\\u00zz"', '"\\u12"', '"a\nb"', '"a\u001fb"'],
    ...['01', '-', '1.', '1.e5', '.5', '1e', '1e+', '+1', '--1', '1.2.3', '1e5e5'],
    ...[
      '[1}',
      '{"a": 1]',
      '[1,]',
      '[,1]',
      '[1 2]',
      '{"a": 1,}',
      '{,}',
      '{"a" 1}',
      '{"a"}',
      '{a: 1}',
      '{1: 1}',
    ],
    ...['tru', 'trux', 'nul', 'falsy', 'True', "'a'", ']', '}', ','],
  ])('does not take %s for a value', (text) => {
    expect(isJson(text)).toBe(false);
    expect(isWhole(text)).toBe(false);
  });

  it('ends a text, a list and an object with their last character, and a number behind it', () => {
    expect(scan('"ab"x')).toEqual({ scan: 'last', read: 4 });
    expect(scan('[1, "]"]x')).toEqual({ scan: 'last', read: 8 });
    expect(scan('{"a": {}}x')).toEqual({ scan: 'last', read: 9 });
    expect(scan('nullx')).toEqual({ scan: 'last', read: 4 });
    expect(scan('-12.5e3,')).toEqual({ scan: 'behind', read: 8 });
    expect(scan('{"a": 1')).toEqual({ scan: 'more', read: 7 });
  });

  it('takes numbers of up to 400 characters', () => {
    expect(isWhole('1'.repeat(400))).toBe(true);
    expect(scan(`[${'1'.repeat(400)},`)).toEqual({ scan: 'more', read: 402 });
    expect(scan(`[${'1'.repeat(401)}`)).toEqual({ scan: 'invalid', read: 402 });
  });
});
