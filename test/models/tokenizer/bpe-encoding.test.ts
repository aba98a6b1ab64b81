import { describe, expect, it, vi } from 'vitest';
import { BpeEncoding } from '../../../models/tokenizer/bpe-encoding.js';
import { Tokenizer } from '../../../models/tokenizer/tokenizer.js';
import { Random } from '../../../tools/soak/random.js';
import {
  ALPHABETS,
  type Library,
  libraryOf,
  MODEL_TOKENIZERS,
  modelOf,
  randomModel,
  randomWord,
  withModel,
} from './library-tokenizer.js';

/** The ids of words as the library alone has them. */
function idsOfLibrary({ model }: Library, words: string[]): (number | undefined)[] {
  return model._call(words).map((entry) => model.tokens_to_ids.get(entry));
}

/** The ids of words; the encoding is one that has seen `before`. */
function idsOf(
  json: unknown,
  words: readonly string[],
  before: readonly string[] = [],
): (number | undefined)[] {
  const { model, tables } = modelOf(json);
  let given = before;
  const cutter = { pre_tokenize: () => [...given], pre_tokenize_text: () => [] };
  const encoding = new BpeEncoding(tables, model, [], cutter);
  let ids: (number | undefined)[] = [];
  for (given of [before, words]) {
    ids = [];
    encoding.encode('any text', { section_index: 0 }, (id) => ids.push(id));
  }
  return ids;
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
      expect(idsOf(json, words)).toEqual(expected);
      expect(idsOf(json, words, [...words].reverse())).toEqual(expected);
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
      const ids = idsOf(json, words);
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
    expect(idsOf(json, words)).toEqual([0, 1, 0, 2]);
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
    expect(idsOf(json, words, words)).toEqual(expected);
  });

  it('are not merged again, unless they are long', () => {
    const { model, tables } = modelOf(json);
    const rankOf = vi.spyOn(tables, 'rankOf');
    const cutter = { pre_tokenize: (text: string) => [text], pre_tokenize_text: () => [] };
    const encoding = new BpeEncoding(tables, model, [], cutter);
    const idsOfWord = (word: string) => {
      rankOf.mockClear();
      const ids: (number | undefined)[] = [];
      encoding.encode(word, { section_index: 0 }, (id) => ids.push(id));
      return { ids, isMerged: rankOf.mock.calls.length > 0 };
    };
    const long = 'ab'.repeat(40);
    expect(idsOfWord('abc')).toEqual({ ids: [10, 2], isMerged: true });
    expect(idsOfWord('abc')).toEqual({ ids: [10, 2], isMerged: false });
    expect(idsOfWord(long)).toEqual({ ids: Array(40).fill(10), isMerged: true });
    expect(idsOfWord(long)).toEqual({ ids: Array(40).fill(10), isMerged: true });
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
