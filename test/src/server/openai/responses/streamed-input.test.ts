import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StreamedInput } from '../../../../../src/server/openai/responses/streamed-input.js';

/** The pieces of input that come with pieces of arguments, the rest at the end last. */
function read(pieces: readonly string[]): string[] {
  const input = new StreamedInput();
  const read = [...pieces.map((piece) => input.push(piece)), input.end()];
  expect(read.join('')).toBe(input.text);
  return read;
}

/** Cuts a text at places; each character may be one. */
const cut = (text: string, places: readonly number[]) => {
  const ends = [...new Set(places.map((place) => place % (text.length + 1)))].sort((a, b) => a - b);
  return [...ends, text.length].map((end, i) => text.slice(i === 0 ? 0 : ends[i - 1], end));
};

describe('input of a custom tool as it comes', () => {
  it('is what JSON says, however the text is cut', () => {
    const texts = fc.string({ unit: 'grapheme', maxLength: 20 });
    const escaped = (text: string) =>
      [...Array(text.length).keys()]
        .map((i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`)
        .join('');
    fc.assert(
      fc.property(texts, fc.boolean(), fc.array(fc.nat(400)), (text, isEscaped, places) => {
        const json = isEscaped ? `{ "input": "${escaped(text)}" }` : JSON.stringify({ input: text });
        expect(read(cut(json, places)).join('')).toBe(text);
      }),
    );
  });

  it('comes with each piece, and an escape when it is whole', () => {
    expect(read(['{"inp', 'ut": "a', '\\', 'n\\u00', 'e9\\ud83e', '\\udda2b', '"', '}'])).toEqual([
      '',
      'a',
      '',
      '\n',
      'é',
      '🦢b',
      '',
      '',
      '',
    ]);
  });

  it.each([
    ['half a character alone', '{"input": "\\ud83ex\\udda2"}', '\ufffdx\ufffd'],
    ['half a character before another half', '{"input": "\\ud83e\\ud83e\\udda2"}', '\ufffd🦢'],
    ['an escape that is none', '{"input": "a\\qb\\u00zz"}', 'aqbu00zz'],
    ['a line break as it is', '{"input": "a\nb"}', 'a\nb'],
    ['a text that was broken off', '{"input": "ab\\u00', 'ab'],
    ['what follows it', '{"input": "a", "input": "b"}', 'a'],
  ])('with %s is read all the same', (_, json, text) => {
    expect(read([...json]).join('')).toBe(text);
    expect(read([json]).join('')).toBe(text);
  });

  it.each([
    ['{ "inp', ''],
    ['{"text', '{"text'],
    ['plain', 'plain'],
  ])('that is cut, %j, has %j', (args, text) => {
    const input = new StreamedInput();
    expect([input.push(args), input.end(true)]).toEqual(['', text]);
  });

  it.each([
    ['{"text": 1}', '{"text": 1}'],
    ['{"other": 1, "input": "a"}', 'a'],
    ['plain', 'plain'],
    ['', ''],
    [`{${' '.repeat(300)}"input": "a"}`, 'a'],
    [' '.repeat(300), ' '.repeat(300)],
  ])('of another form, %j, comes at the end', (args, text) => {
    const pieces = read([...args]);
    expect(pieces.slice(0, -1).join('')).toBe('');
    expect(pieces.at(-1)).toBe(text);
  });
});
