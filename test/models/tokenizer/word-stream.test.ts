import { describe, expect, it } from 'vitest';
import {
  type LibraryPreTokenizer,
  type PreTokenizeOptions,
  WordCutter,
} from '../../../models/tokenizer/word-stream.js';
import { Random } from '../../../tools/soak/random.js';
import { ALPHABETS, libraryOf, withModel } from './library-tokenizer.js';
import { SCRIPTS } from './tiny-tokenizers.js';

const split = (Regex: string, behavior = 'Isolated', invert = false) => ({
  type: 'Split',
  ...{ pattern: { Regex }, behavior, invert },
});
const byteLevel = (fields: object = {}) => ({ type: 'ByteLevel', add_prefix_space: false, ...fields });
const sequence = (...pretokenizers: object[]) => ({ type: 'Sequence', pretokenizers });

const KINDS: Readonly<Record<string, object | null>> = {
  'no part': null,
  'ByteLevel with its pattern': byteLevel(),
  'ByteLevel with a space before the text': byteLevel({ add_prefix_space: true }),
  'ByteLevel without a pattern': byteLevel({ use_regex: false }),
  'ByteLevel with a space and no pattern': byteLevel({ add_prefix_space: true, use_regex: false }),
  'digits and ByteLevel': sequence({ type: 'Digits', individual_digits: true }, byteLevel()),
  'a Split': split('\\p{L}+|\\s'),
  'a Split that matches nothing somewhere': split('x*'),
  'a Split that merges': split('\\s', 'MergedWithPrevious'),
  'a Split whose matches are removed': split('\\s+', 'Removed'),
  'a Split whose matches are removed, in small letters': split('\\s+', 'removed'),
  'a Split whose matches are all that stays': split('\\p{L}+', 'Removed', true),
  'a Split at a text': { type: 'Split', pattern: { String: ' ' }, behavior: 'Isolated', invert: false },
  'a Sequence of nothing': sequence(),
  'Sequences in a Sequence': sequence(
    split('\\p{N}'),
    sequence({ type: 'Punctuation' }, sequence({ type: 'Metaspace', prepend_scheme: 'first' })),
    byteLevel({ use_regex: false }),
  ),
  Metaspace: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: false },
  'words by white space': sequence({ type: 'WhitespaceSplit' }, byteLevel({ add_prefix_space: true })),
};

function wordsOf(part: LibraryPreTokenizer | null, text: string, options: PreTokenizeOptions): string[] {
  const cutter = new WordCutter(part);
  const words: string[] = [];
  cutter.each(text, options, (word) => words.push(cutter.spelled(word)));
  return words;
}

describe('the words of a text', () => {
  it.each(Object.keys(KINDS))('are those of the library with %s', (kind) => {
    const json = { ...withModel({ vocab: { a: 0 }, merges: [] }), pre_tokenizer: KINDS[kind] };
    const { pre_tokenizer: part } = libraryOf(json);
    const random = new Random(1);
    const texts = [
      ...SCRIPTS,
      SCRIPTS.join(' ').repeat(30),
      ...ALPHABETS.map((alphabet) => Array.from({ length: 3000 }, () => random.pick(alphabet)).join('')),
      // Halves of characters at every place where a long text is cut.
      ...[0, 1].map((before) => `${'a'.repeat(before)}${'\u{1f600}'.repeat(3000)}\ud83d`),
      `${'a'.repeat(1023)}\ud83d${'b'.repeat(1023)}\ude00${'c'.repeat(1023)}\ud83d`,
    ];
    for (const text of texts) {
      for (const section_index of [0, 1]) {
        const expected = part?.pre_tokenize(text, { section_index }) ?? [text];
        expect(wordsOf(part, text, { section_index })).toEqual(expected);
      }
    }
  });

  it('come one after the other: none is looked for before the one before it was taken', () => {
    const json = { ...withModel({ vocab: { a: 0 }, merges: [] }), pre_tokenizer: split('\\s') };
    const { pre_tokenizer: first } = libraryOf(json);
    const seen: string[] = [];
    const note = (word: string) => [seen[seen.push(`cut ${word}`) - 1]!];
    const second = { ...first!, config: {}, pre_tokenize: note };
    const both = { ...first!, tokenizers: [first, second] };
    new WordCutter(both).each('a b', { section_index: 0 }, (word) => seen.push(`took ${word}`));
    expect(seen).toEqual(['cut a', 'took cut a', 'cut  ', 'took cut  ', 'cut b', 'took cut b']);
  });

  it('are not spelled until they are asked for, where the last part spells them', () => {
    const json = { ...withModel({ vocab: { a: 0 }, merges: [] }), pre_tokenizer: byteLevel() };
    const cutter = new WordCutter(libraryOf(json).pre_tokenizer);
    const words: string[] = [];
    cutter.each('a \u00e4', { section_index: 0 }, (word) => words.push(word));
    expect(words).toEqual(['a', ' \u00e4']);
    expect(words.map((word) => cutter.spelled(word))).toEqual(['a', '\u0120\u00c3\u00a4']);
  });
});
