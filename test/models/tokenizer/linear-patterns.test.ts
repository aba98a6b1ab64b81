import { describe, expect, it } from 'vitest';
import { knownPreTokenizers, preTokenization } from '../../../models/tokenizer/gguf-pre-tokenizers.js';
import { isLinearPattern } from '../../../models/tokenizer/linear-patterns.js';

/** Patterns of the tokenizer.json files of published models. */
const PUBLISHED = {
  'GPT-2': "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
  'Llama 3':
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  'Qwen 2':
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
  Bloom: ' ?[^(\\s|[.,!?…。，、।۔،])]+',
  digits: '\\p{N}+',
};

/** Digits in groups from the right: each looks for the end of the number, so that texts are encoded with a limit of time. */
const GROUPING = ['afmoe', 'cohere2moe', 'superbpe', 'tiny_aya'];

describe('patterns of ordinary models', () => {
  it('are proved where they make one space of several, as in normalizers of Unigram', () => {
    expect(isLinearPattern(' {2,}')).toBe(true);
    expect(isLinearPattern(' {2,}a')).toBe(false);
  });

  it.each(Object.entries(PUBLISHED))('are linear: %s', (_, pattern) => {
    expect(isLinearPattern(pattern)).toBe(true);
  });

  const patternsOf = (name: string) => {
    const parts = preTokenization(name)!.preTokenizer.pretokenizers as { pattern?: { Regex: string } }[];
    return parts.flatMap(({ pattern }) => (pattern === undefined ? [] : [pattern.Regex]));
  };

  it.each(knownPreTokenizers)('are linear: %s of GGUF', (name) => {
    const patterns = patternsOf(name);
    expect(patterns.length).toBeGreaterThan(0);
    const unproven = patterns.filter((pattern) => !isLinearPattern(pattern));
    expect(unproven.map((pattern) => pattern.includes('{3})'))).toEqual(
      GROUPING.includes(name) ? [true] : [],
    );
  });
});

describe('what is not proved', () => {
  it.each([
    ['a class without another, and what may fail', '(?:(?!\\p{Han})\\p{L})*b'],
    ['a class without a run', '(?:(?!\\p{Han}+)\\p{L})+'],
    ['spaces in pieces that are no halves', '\\s{512}(?!\\S)|\\s{511}(?!\\S)|\\s{1}'],
    ['words that have to be there', '(?: \\p{L}[\\p{L}\\p{M}]*)+'],
    ['a repetition of repetitions', '(a+)+$'],
    ['two ways to the same', '(\\s|\\s+)+x'],
    ['a group that is repeated', '(?:ab)+'],
    ['one run behind another', 'a*a*b'],
    ['something behind a run', 'a+b'],
    ['a run that may fail, and nobody takes it', '\\s*[\\r\\n]+'],
    ['one behind a run that may fail, and nobody takes it', '\\s*[\\r\\n]|\\S'],
    ['a run that may fail, and the next takes one of it', '\\s*[\\r\\n]+|\\s|\\s+'],
    ['a run that may fail, and the next takes another', '\\s*[\\r\\n]+|\\S+'],
    ['a lookahead that may refuse all', '\\s+(?=x)'],
    ['a lookahead inside', '\\s+(?!\\S)x'],
    ['a lookahead behind another class', '\\p{L}+(?!\\S)'],
    ['a lookbehind', '(?<=a)b+'],
    ['a back reference', '(a)\\1+'],
    ['the end of the text', 'a+$'],
    ['a boundary', '\\ba+'],
    ['a lazy run', 'a+?b'],
    ['a count that the library repeats', 'a{1,3}+'],
    ['a large count', 'a{1,1000}b'],
    ['many optional pieces', `${'a?'.repeat(20)}b`],
    ['an empty branch', 'a|'],
    ['nothing', ''],
    ['sets of classes', '[a-z&&[aeiou]]+'],
    ['nested groups', '((a))'],
    ['what is no expression', '(('],
    ['a very long one', 'a'.repeat(10_000)],
  ])('%s', (_, pattern) => {
    expect(isLinearPattern(pattern)).toBe(false);
  });
});

describe('what is proved', () => {
  // Steps of a matcher that counts them, as the engine's time would say nothing on a busy machine.
  it.each(Object.entries(PUBLISHED))('leaves no part of a text unread: %s', (_, pattern) => {
    const source = pattern.startsWith(' ?[^(') ? ' ?[^\\s.,!?]+' : pattern.replace('(?i:', '(?:');
    const expression = new RegExp(source, 'gu');
    for (const unit of [' ', '\n', ' \n', 'a', "'", "'s", '1', '!', '\u0301', 'A', 'Aa', '漢']) {
      const text = unit.repeat(500);
      const covered = Array.from(text.matchAll(expression), ([match]) => match.length);
      // A run is cut into few matches or short ones: never a long read for a short match, over and over.
      const longest = Math.max(0, ...covered);
      expect(covered.length * longest).toBeLessThanOrEqual(4 * text.length);
    }
  });
});
