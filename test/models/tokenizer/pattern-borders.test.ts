import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { knownPreTokenizers, preTokenization } from '../../../models/tokenizer/gguf-pre-tokenizers.js';
import { PatternBorders } from '../../../models/tokenizer/pattern-borders.js';
import { WordCutter } from '../../../models/tokenizer/word-stream.js';
import { draws } from '../../support/scale.js';
import { libraryOf } from './library-tokenizer.js';

/** A cutter with the patterns of a Split each, as the library has them. */
function cutterOf(patterns: readonly string[]): WordCutter {
  const pretokenizers = patterns.map((Regex) => ({
    type: 'Split',
    pattern: { Regex },
    behavior: 'Isolated',
    invert: false,
  }));
  const json = { added_tokens: [], model: { type: 'BPE', vocab: { a: 0 }, merges: [] } };
  return new WordCutter(
    libraryOf({ ...json, pre_tokenizer: { type: 'Sequence', pretokenizers } }).pre_tokenizer,
  );
}

function wordsOf(cutter: WordCutter, text: string): string[] {
  const words: string[] = [];
  cutter.each(text, { section_index: 1 }, (word) => words.push(word));
  return words;
}

/** Compares the words of a text with those of its parts at each border. @returns number of borders */
function compareAtBorders(cutter: WordCutter, borders: PatternBorders, text: string): number {
  const whole = wordsOf(cutter, text);
  let count = 0;
  for (let at = 1; at < text.length; at++) {
    if (!borders.isBetween(text.charCodeAt(at - 1), text.charCodeAt(at))) continue;
    count++;
    const parts = [...wordsOf(cutter, text.slice(0, at)), ...wordsOf(cutter, text.slice(at))];
    if (parts.join('\0') !== whole.join('\0')) expect({ text, at, words: parts }).toEqual({ words: whole });
  }
  return count;
}

const UNITS = [
  ...['a', 'b', 'S', 's', 't', 'l', 'é', 'ſ', '你', '\u0301', '\u{1f600}', '\ud83d', '\ude00'],
  ...['0', '7', '½', ' ', ' ', '\n', '\r', '\t', '\u0085', '\u00a0', '\ufeff'],
  ...["'", '"', '{', '}', ':', ',', '.', '_', '/', '-', '$', '<', '|', '`', '\0'],
];
const texts = fc
  .array(fc.constantFrom(...UNITS), { minLength: 40, maxLength: 80 })
  .map((units) => units.join(''));

/** Their words may run over many others, or end at what comes much later. */
const WITHOUT = ['afmoe', 'cohere2moe', 'exaone-moe', 'jais-2', 'tiny_aya'];

describe('the borders of the patterns of tokenizers', () => {
  const patternsOf = (names: readonly string[]) =>
    new Map(
      names.map((name) => {
        const cutting = preTokenization(name)!.preTokenizer.pretokenizers as {
          pattern?: { Regex: string };
        }[];
        const patterns = cutting.flatMap(({ pattern }) => pattern?.Regex ?? []);
        return [patterns.join('\n'), patterns] as const;
      }),
    );

  const families = patternsOf(knownPreTokenizers.filter((name) => !WITHOUT.includes(name)));

  it('are there for all that are known, but for those that look far ahead', () => {
    expect(families.size).toBeGreaterThan(8);
    const exist = (patterns: readonly string[]) => new PatternBorders(cutterOf(patterns).patterns!).exist;
    for (const patterns of families.values()) expect(exist(patterns), patterns.join()).toBe(true);
    for (const patterns of patternsOf(WITHOUT).values()) expect(exist(patterns), patterns.join()).toBe(false);
  });

  it.each([...families.values()].map((patterns) => [patterns]))('are between words: %j', (patterns) => {
    const cutter = cutterOf(patterns);
    const borders = new PatternBorders(cutter.patterns!);
    let count = 0;
    fc.assert(
      fc.property(texts, (text) => {
        count += compareAtBorders(cutter, borders, text);
      }),
      { numRuns: draws(30) },
    );
    expect(count).toBeGreaterThan(draws(50));
  });

  it('are where JSON and prose have them, and not within words', () => {
    const gpt2 = preTokenization('gpt-2')!.preTokenizer.pretokenizers as [{ pattern: { Regex: string } }];
    const borders = new PatternBorders(cutterOf([gpt2[0].pattern.Regex]).patterns!);
    const isBetween = (pair: string) => borders.isBetween(pair.charCodeAt(0), pair.charCodeAt(1));
    for (const pair of ['a"', 'a ', 'a7', '7 ', '"a', '",', ': ']) {
      expect(isBetween(pair), pair).toBe(!['",'].includes(pair));
    }
    // A contraction, spaces that a rule looks behind, letters of one word, and what is not ASCII.
    for (const pair of ["'s", '  ', ' a', '\n{', 'ab', 'aé', 'éa']) expect(isBetween(pair), pair).toBe(false);
  });
});

describe('the borders of patterns at random', () => {
  const atom = fc.constantFrom('a', 'b', '[ab]', '[^a]', '[^\\s\\p{L}]', '\\s', '\\p{L}', '\\p{N}', "'", '.');
  const times = fc.constantFrom('', '', '?', '+', '*', '{1,3}');
  const piece = fc.tuple(atom, times).map((parts) => parts.join(''));
  const group = fc
    .tuple(fc.array(fc.array(atom, { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 3 }))
    .map(([branches]) => `(?:${branches.map((branch) => branch.join('')).join('|')})`);
  const branch = fc
    .tuple(
      fc.array(fc.oneof({ weight: 4, arbitrary: piece }, group), { minLength: 1, maxLength: 3 }),
      fc.constantFrom('', '', '', '(?!\\S)'),
    )
    .map(([pieces, end]) => pieces.join('') + end);
  const pattern = fc.array(branch, { minLength: 1, maxLength: 4 }).map((branches) => branches.join('|'));
  const units = fc.array(fc.constantFrom('a', 'b', 'c', ' ', '\n', '1', "'", '-', 'é'), { maxLength: 14 });

  it('are between words whatever the patterns are', () => {
    let count = 0;
    fc.assert(
      fc.property(
        fc.array(pattern, { minLength: 1, maxLength: 3 }),
        fc.array(units, { maxLength: 8 }),
        (patterns, all) => {
          const cutter = cutterOf(patterns);
          const borders = new PatternBorders(cutter.patterns!);
          for (const one of all) count += compareAtBorders(cutter, borders, one.join(''));
        },
      ),
      { numRuns: draws(300) },
    );
    expect(count).toBeGreaterThan(draws(50));
  });

  it('are not there for a pattern of another form', () => {
    for (const source of ['(?<=a)b|.', 'a(?=b)|.', '(a|b)+', '\\ba|.', 'a*', '[^b]*(?!a)', 'a|']) {
      expect(new PatternBorders([new RegExp(source, 'gu')]).exist, source).toBe(false);
    }
    expect(new PatternBorders([/[a-z]+|[^a-z]/giu]).exist).toBe(false);
    expect(new PatternBorders([/[a-z]+|[^a-z]/gu]).exist).toBe(true);
  });
});
