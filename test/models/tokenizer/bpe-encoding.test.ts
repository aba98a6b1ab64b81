import { describe, expect, it } from 'vitest';
import { BpeEncoding, type LibraryBpe } from '../../../models/tokenizer/bpe-encoding.js';
import { Tokenizer } from '../../../models/tokenizer/tokenizer.js';
import { Random } from '../../../tools/soak/random.js';
import {
  ALPHABETS,
  type Library,
  libraryOf,
  MODEL_TOKENIZERS,
  randomModel,
  randomWord,
  withModel,
} from './library-tokenizer.js';

/** Words of more units do not come to the library. */
const MAX_WORD_UNITS = 1024;

/** The ids of words as the library alone has them. */
function idsOfLibrary({ model }: Library, words: string[]): (number | undefined)[] {
  return model._call(words).map((entry) => model.tokens_to_ids.get(entry));
}

/** The ids of words; the encoding is one that has seen `before`. */
function idsOf(
  model: LibraryBpe,
  words: readonly string[],
  before: readonly string[] = [],
): (number | undefined)[] {
  let given = before;
  const cutter = { pre_tokenize: () => [...given], pre_tokenize_text: () => [] };
  const encoding = new BpeEncoding(model, cutter);
  let ids: (number | undefined)[] = [];
  for (given of [before, words]) {
    ids = [];
    encoding.encode('any text', { section_index: 0 }, (id) => ids.push(id));
  }
  return ids;
}

/** The same library, whose own merging may not be given a long word. */
function withoutLongWords(library: Library): Library {
  const bpe = library.model.bpe.bind(library.model);
  library.model.bpe = (word) => {
    if (word.length > MAX_WORD_UNITS) throw new Error(`A word of ${word.length} units came to the library.`);
    return bpe(word);
  };
  return library;
}

function randomWords(random: Random, alphabet: readonly string[]): string[] {
  return Array.from({ length: random.integer(1, 12) }, (_, i) =>
    i % 4 === 1 ? randomWord(random, alphabet, 1025, 3000) : randomWord(random, alphabet, 1, 80),
  );
}

const bytes = Array.from(
  { length: 256 },
  (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
);
const withEntries = (model: object, entries: readonly string[]) => {
  const { vocab } = model as { vocab: Record<string, number> };
  const all = [...new Set([...entries, ...Object.keys(vocab)])];
  return { ...model, vocab: Object.fromEntries(all.map((entry, id) => [entry, id])) };
};

const KINDS: Readonly<Record<string, (model: object) => object>> = {
  'nothing else': (model) => model,
  'an unknown token': (model) => withEntries({ ...model, unk_token: '<unk>' }, ['<unk>']),
  'an unknown token that is fused': (model) =>
    withEntries({ ...model, unk_token: '<unk>', fuse_unk: true }, ['<unk>']),
  'an unknown token that no entry is': (model) => ({ ...model, unk_token: '<unk>', fuse_unk: true }),
  'byte fallback': (model) => withEntries({ ...model, byte_fallback: true }, bytes),
  'byte fallback to some bytes, and an unknown token that is fused': (model) =>
    withEntries({ ...model, byte_fallback: true, unk_token: '<unk>', fuse_unk: true }, [
      '<unk>',
      ...bytes.slice(0, 0xe5),
    ]),
  'a suffix within words': (model) => {
    const { vocab } = model as { vocab: Record<string, number> };
    const suffixed = Object.keys(vocab).map((entry) => `${entry}@@`);
    return withEntries({ ...model, continuing_subword_suffix: '@@', unk_token: '<unk>' }, [
      '<unk>',
      ...suffixed,
    ]);
  },
  'a suffix at the end of words': (model) =>
    withEntries({ ...model, end_of_word_suffix: '</w>', unk_token: 'a' }, ['a</w>', '你</w>']),
};

describe('the ids of words, of merges of no sense', () => {
  it.each(Object.keys(KINDS))('are those of the library with %s', (kind) => {
    const random = new Random(kind.length);
    let numIds = 0;
    for (let i = 0; i < 15; i++) {
      const alphabet = random.pick(ALPHABETS);
      const json = withModel(KINDS[kind]!(randomModel(random, alphabet)));
      const words = randomWords(random, alphabet);
      const expected = idsOfLibrary(libraryOf(json), words);
      const { model } = withoutLongWords(libraryOf(json));
      expect(idsOf(model, words)).toEqual(expected);
      expect(idsOf(model, words, [...words].reverse())).toEqual(expected);
      numIds += expected.length;
    }
    expect(numIds).toBeGreaterThan(1000);
  });

  it('are the entry that a long word is, where merges are ignored', () => {
    const word = 'ab'.repeat(600);
    const model = { vocab: { a: 0, b: 1, ab: 2, [word]: 3 }, merges: [['a', 'b']] };
    for (const ignore_merges of [true, false]) {
      const json = withModel({ ...model, ignore_merges });
      const words = [word, 'ab', `${word}a`];
      const ids = idsOf(withoutLongWords(libraryOf(json)).model, words);
      expect(ids).toEqual(idsOfLibrary(libraryOf(json), words));
      expect(ids.includes(3)).toBe(ignore_merges);
    }
  });

  it('are fused across words however many there are', () => {
    const json = withModel({
      vocab: { '<unk>': 0, a: 1, b: 2 },
      merges: [],
      unk_token: '<unk>',
      fuse_unk: true,
    });
    const words = [...Array.from({ length: 40_000 }, () => 'x'), 'a', 'x'.repeat(2000), 'x', 'b'];
    expect(idsOf(libraryOf(json).model, words)).toEqual([0, 1, 0, 2]);
    expect(idsOfLibrary(libraryOf(json), words)).toEqual([0, 1, 0, 2]);
  });
});

describe('words that were there before', () => {
  const letters = [...'abcdefghij'];
  const json = withModel({
    vocab: Object.fromEntries([...letters, 'ab', 'cd'].map((entry, id) => [entry, id])),
    merges: [
      ['a', 'b'],
      ['c', 'd'],
    ],
  });

  it('have the same ids when there were more than are remembered', () => {
    const words = Array.from({ length: 40_000 }, (_, i) =>
      [...String(i)].map((digit) => letters[Number(digit)]).join(''),
    );
    const expected = idsOfLibrary(libraryOf(json), words);
    expect(idsOf(libraryOf(json).model, words, words)).toEqual(expected);
  });

  it('are not encoded again', () => {
    const library = libraryOf(json);
    const encode = library.model.encode.bind(library.model);
    const asked: string[] = [];
    library.model.encode = (words) => {
      asked.push(...words);
      return encode(words);
    };
    const long = 'ab'.repeat(40);
    expect(idsOf(library.model, ['abc', long, 'abc'], ['abc', 'd', long])).toEqual([
      10,
      2,
      ...Array(40).fill(10),
      10,
      2,
    ]);
    expect(asked).toEqual(['abc', 'd', long, long]);
  });
});

describe.each(MODEL_TOKENIZERS)('texts with the tokenizer of %s', (_, file) => {
  it('have the ids that the library gives', () => {
    const json = file() as { added_tokens: unknown[]; normalizer: unknown };
    // Only what the library does is compared: no added tokens, no template around the text.
    const plain = { ...json, added_tokens: [], post_processor: null, normalizer: null };
    const library = libraryOf(plain);
    const tokenizer = new Tokenizer({ tokenizerJson: plain, tokenizerConfig: {} });
    const unknown = tokenizer.unkTokenId;
    const random = new Random(7);
    for (let i = 0; i < 24; i++) {
      const alphabet = [...random.pick(ALPHABETS), ...(random.chance(0.5) ? [' ', '1', '.'] : [])];
      const text = Array.from(
        { length: random.chance(0.3) ? random.integer(1, 1024) : random.integer(1025, 6000) },
        () => random.pick(alphabet),
      ).join('');
      const words = library.pre_tokenizer?.pre_tokenize(text, { section_index: 0 }) ?? [text];
      const ids = idsOfLibrary(library, words).map((id) => id ?? unknown);
      expect([...tokenizer.encode(text)]).toEqual(ids.filter((id) => id !== null));
    }
  });
});
