import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { carryForms, parseWritten, writtenJson } from '../../base/written-json.js';

describe('JSON as it was written', () => {
  it.each([
    '{"a":1.0,"b":[1e2,-0.0,12345678901234567890],"c":{"d":2.50}}',
    '{"b":1,"7":{"z":0,"1":2},"a":[{"2":1,"1":1}]}',
    '[1.0,{"x":100000000000000000000},"1.0",[],{}]',
  ])('has its numbers and its names in order: %s', (text) => {
    const value = parseWritten(text);
    expect(value).toEqual(JSON.parse(text));
    expect(writtenJson(value)).toBe(text.replace('2.50', '2.5'));
  });

  it('is an ordinary value', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseWritten(text)).toEqual(JSON.parse(text));
        expect(JSON.parse(writtenJson(parseWritten(text)))).toEqual(
          JSON.parse(JSON.stringify(JSON.parse(text))),
        );
      }),
    );
  });

  it('keeps texts that look like numbers or marks', () => {
    const text = '{"1":"1.0","\\ue000":"\\uE0001.0","\ue001":1.0,"q\\"1.0":"\\\\","__proto__":{"x":2.0}}';
    const value = parseWritten(text) as Record<string, unknown>;
    expect(value).toEqual(JSON.parse(text));
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(JSON.parse(writtenJson(value))).toEqual(JSON.parse(text));
    expect(writtenJson(value)).toContain('"\ue001":1.0');
  });

  it('fails as JSON.parse does', () => {
    for (const text of ['{"a": 1.0,}', '[1.0', '{"1": 1.0 2}', '01.0', '"\\q1.0"']) {
      const message = (parse: (text: string) => unknown) => {
        try {
          parse(text);
          return null;
        } catch (error) {
          return (error as Error).message;
        }
      };
      expect(message(parseWritten)).toBe(message(JSON.parse));
      expect(message(parseWritten)).not.toBe(null);
    }
  });

  it('goes over to a checked copy', () => {
    const value = parseWritten('{"tools":[{"default":1.0,"left":2.0}],"other":3}') as { tools: object[] };
    const copy = { tools: value.tools.map((tool) => ({ ...tool })) };
    carryForms(value, copy);
    expect(writtenJson(copy)).toBe('{"tools":[{"default":1.0,"left":2.0}]}');
  });
});
