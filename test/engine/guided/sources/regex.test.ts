import { describe, expect, it } from 'vitest';
import { ReadingWorkError, readingWork, withinReadingWork } from '../../../../engine/guided/reading-work.js';
import { regexTexts } from '../../../../engine/guided/sources/regex.js';
import { parseRegex } from '../../../../engine/guided/sources/regex-reader.js';
import { Alphabet } from '../../../../engine/guided/texts/alphabet.js';
import { Terms } from '../../../../engine/guided/texts/terms.js';
import { matcherOf, matches } from '../follow.js';

const TEXTS = [
  '',
  'a',
  'b',
  'ab',
  'abc',
  'aab',
  'a1',
  '12',
  '3.14',
  'é',
  '日本',
  '😀',
  'A',
  ' ',
  '\n',
  '-',
  ']',
  'foo',
  'bar',
  'a-b',
  '\u2028',
];

describe('a regular expression', () => {
  // JavaScript's own engine is the reference.
  it.each([
    'a*b?',
    '(a|b)+',
    'a{2}b|c{0,1}',
    '(?:foo|ba[rz])',
    '(?<name>a)(b)?',
    '[a-c]{1,3}',
    '[^a]',
    '[^a-c\\d]+',
    '\\d+(\\.\\d+)?',
    '\\w+',
    '\\W',
    '\\s',
    '.',
    '.{2}',
    '[\\]\\-]',
    '[\\w-]+',
    'a-b|-',
    '\\u00e9|\\u{1F600}|\\uD83D\\uDE00',
    '\\x61',
    '\\p{L}+',
    '\\P{L}+',
    '\\p{Lu}',
    '(a*)*',
    '(|a)+b',
    'a*?b',
    '[\\u3000-\\uffff]+',
    '',
  ])('%s matches what JavaScript matches', (pattern) => {
    const matcher = matcherOf('regex', pattern);
    const reference = new RegExp(`^(?:${pattern})$`, 'u');
    for (const text of TEXTS) expect([text, matches(matcher, text)]).toEqual([text, reference.test(text)]);
  });

  it.each(['^a', 'b$', '^[ab]+$', 'a|^b', 'o', '^$', '^a$|^b$'])(
    'as a pattern of a schema, %s is searched for',
    (pattern) => {
      const matcher = matcherOf('json_schema', { type: 'string', pattern });
      for (const text of TEXTS) {
        expect([text, matches(matcher, JSON.stringify(text))]).toEqual([
          text,
          new RegExp(pattern, 'u').test(text),
        ]);
      }
    },
  );

  it('anchors at the ends change nothing where the whole answer is to match', () => {
    const matcher = matcherOf('regex', '^ab$');
    expect([matches(matcher, 'ab'), matches(matcher, 'xab')]).toEqual([true, false]);
  });

  it('matches no bytes that are not UTF-8', () => {
    const matcher = matcherOf('regex', '[^a]');
    const wrong = [
      [0xc0, 0x80],
      [0xc1, 0xbf],
      [0xed, 0xa0, 0x80],
      [0xf4, 0x90, 0x80, 0x80],
      [0xf5, 0x80, 0x80, 0x80],
      [0x80],
      [0xff],
    ];
    for (const bytes of wrong) expect(matches(matcher, bytes)).toBe(false);
    expect(matches(matcher, [0xf4, 0x8f, 0xbf, 0xbf])).toBe(true);
  });

  it.each([
    ['(?=a)b', 'No text matches the guide'],
    ['a(?<!b)', 'look-behind is not supported'],
    ['((?=a)[^])*b', 'a part with a look-ahead, ^, $ or \\b is repeated without an end'],
    ['^*', 'a ^, $ or \\b is repeated'],
    ['(a)\\1', 'back-references are not supported'],
    ['(?i)a', 'a group of this kind, or flags in it, is not supported'],
    ['a**', 'nothing that * could repeat'],
    ['*a', 'nothing that * could repeat'],
    ['(a', 'a ( is not closed'],
    ['a)', 'a ) that no ( opens'],
    ['[a', 'a [ is not closed'],
    ['[z-a]', 'ends before it begins'],
    ['a{3,2}', 'ends before it begins'],
    ['a{1000000}', 'at most 10000 is supported'],
    ['a^b', 'No text matches the guide'],
    ['a$b', 'No text matches the guide'],
    ['\\p{Nothing}', 'no Unicode property that is known'],
    ['(a{9999}){9999}', 'too large'],
    [`${'('.repeat(300)}a${')'.repeat(300)}`, 'nested deeper than 200'],
    ['[^\\s\\S]', 'No text matches the guide'],
  ])('%s is refused: %s', (pattern, why) => {
    expect(() => matcherOf('regex', pattern)).toThrow(why);
  });
});

describe('reading a regular expression', () => {
  it('that is too much work says so, and does not blame its text', () => {
    const pattern = '(a|b|c)(?=d)[x-z]{3}';
    withinReadingWork(1e6, () => parseRegex(pattern));
    const parsing = readingWork();
    const read = () => regexTexts(pattern, { mode: 'search' });
    // What its parts cost, and what their texts do.
    for (const steps of [3, parsing]) expect(() => withinReadingWork(steps, read)).toThrow(ReadingWorkError);
    expect(() => withinReadingWork(1e6, read)).not.toThrow();
  });

  it('takes as many steps for a place in a text as there are kinds of characters', () => {
    const workOf = (characters: string) => {
      const terms = new Terms(new Alphabet([...characters].map((text) => ({ kind: 'text', text }))));
      const { length } = terms.alphabet.letters;
      withinReadingWork(1e6, () => terms.behind(terms.empty));
      return [length, readingWork()] as const;
    };
    const [fewLetters, fewSteps] = workOf('ab');
    const [manyLetters, manySteps] = workOf('abcdefghij');
    expect(manyLetters - fewLetters).toBe(8);
    expect(manySteps - fewSteps).toBe(8);
  });
});
