import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KnownTexts } from '../../../models/tokenizer/known-texts.js';
import { PatternBorders } from '../../../models/tokenizer/pattern-borders.js';
import { piecesOf } from '../../../models/tokenizer/text-pieces.js';
import { TokenIdList } from '../../../models/tokenizer/token-id-list.js';
import { Tokenizer, type TokenizerSourceFiles } from '../../../models/tokenizer/tokenizer.js';
import { Random } from '../../../tools/soak/random.js';
import { draws } from '../../support/scale.js';
import { MODEL_TOKENIZERS, randomWord } from './library-tokenizer.js';
import { byteLevelAlphabet, byteLevelFiles, sentencePieceFiles } from './tiny-tokenizers.js';

const LETTERS = [...'abcdefghijklmnopqrstuvwxyz'];
const words = new PatternBorders([/[a-z]+|[^a-z]/gu]);

/** Parts of prompts: functions, prose, texts that change others in front of them, and special tokens. */
const PARTS = [
  '{"type": "function", "function": {"name": "look_up", "description": "What it\'s for", "parameters": {}}}\n',
  `{"name":"compact","values":[${Array.from({ length: 90 }, (_, i) => i).join(',')}]}`,
  'Prose goes on and on, with a word here and another there, until somebody has read enough of it. '.repeat(
    4,
  ),
  'héllo he\u0301llo a\u0301 b\u0327 \u1100\u1161\u11a8 ﬁ \ud83d \ude00 \u{1f600}\u200d 你好世界 '.repeat(3),
  "it's    spaces\n\n\n  and\tlines\r\n\r\n".repeat(5),
  'x'.repeat(1500),
  '\u0301\u0301 ',
  '<|x|>',
  '<|im_start|>',
  '<s>',
  '<tool>',
  ' ',
];
const prompts = fc
  .array(fc.constantFrom(...PARTS.keys()), { minLength: 4, maxLength: 24 })
  .map((indices) => indices.map((i) => PARTS[i]!).join(''));

/** Compares what a tokenizer that has seen all texts before says with what a new one says. */
function compare(files: TokenizerSourceFiles, numRuns: number): void {
  const used = new Tokenizer(files);
  fc.assert(
    fc.property(prompts, fc.nat(3000), fc.boolean(), (prompt, cut, special) => {
      const fresh = new Tokenizer(files);
      const segments = [
        { text: prompt.slice(0, cut), special },
        { text: prompt.slice(cut), special: true },
      ];
      const expected = fresh.encodeSegments(segments);
      for (let i = 0; i < 2; i++) expect(used.encodeSegments(segments)).toEqual(expected);
      // Another beginning moves all that follows.
      const moved = [{ text: `${prompt.slice(0, cut % 50)}!`, special: false }, ...segments];
      expect(used.encodeSegments(moved)).toEqual(new Tokenizer(files).encodeSegments(moved));
    }),
    { numRuns },
  );
}

const bpe = byteLevelFiles();
const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const split = { type: 'Split', pattern: { Regex: GPT2 }, behavior: 'Isolated', invert: false };
const letters = { type: 'ByteLevel', add_prefix_space: false, use_regex: false };
const cutting = { type: 'Sequence', pretokenizers: [split, letters] };
const withJson = (fields: object): TokenizerSourceFiles => ({
  tokenizerJson: { ...(bpe.tokenizerJson as object), ...fields },
  tokenizerConfig: bpe.tokenizerConfig,
});
const unigram = {
  type: 'Unigram',
  unk_id: 0,
  vocab: [
    ['<unk>', 0],
    ...['▁', 'pro', 'se', '▁and', 'on', 'xx', 'x', '"', 'type', ...byteLevelAlphabet().slice(0, 90)].map(
      (text, i): [string, number] => [text, -1 - i / 10],
    ),
  ],
};

describe('tokens from memory are those of a new tokenizer', () => {
  it.each<[string, TokenizerSourceFiles]>([
    ['of one that cuts words by GPT-2’s pattern', withJson({ pre_tokenizer: cutting })],
    ['with NFC before', withJson({ pre_tokenizer: cutting, normalizer: { type: 'NFC' } })],
    ['with lower case before', withJson({ pre_tokenizer: cutting, normalizer: { type: 'Lowercase' } })],
    [
      'with added tokens in normalized text',
      withJson({
        pre_tokenizer: cutting,
        normalizer: { type: 'NFC' },
        added_tokens: [{ id: 301, content: 'e", "d', special: false, normalized: true }],
      }),
    ],
    ['with a space in front', withJson({ pre_tokenizer: { type: 'ByteLevel', add_prefix_space: true } })],
    ['without a pattern', bpe],
    ['of SentencePiece', sentencePieceFiles()],
    [
      'of Unigram, with a space before the first text alone',
      {
        tokenizerJson: {
          added_tokens: [{ id: 1, content: '<|x|>', special: true }],
          pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: false },
          model: unigram,
        },
        tokenizerConfig: {},
      },
    ],
  ])('%s', (_, files) => compare(files, draws(5)));

  it.each(MODEL_TOKENIZERS)('of %s', (_, file) => {
    compare({ tokenizerJson: file(), tokenizerConfig: {} }, draws(1));
  });
});

describe('known texts', () => {
  /** Texts that are encoded again for a text. */
  function encoder(borders: PatternBorders | null) {
    const known = new KnownTexts(() => borders);
    return (text: string, isFirst = false) => {
      const ids = new TokenIdList();
      const anew: string[] = [];
      known.encode(text, isFirst, ids, (piece) => {
        anew.push(piece);
        for (const unit of piece) ids.push(unit.charCodeAt(0));
      });
      expect(ids.between([], [])).toEqual(Int32Array.from(text, (unit) => unit.charCodeAt(0)));
      return anew;
    };
  }
  const random = new Random(5);
  const long = Array.from({ length: 1200 }, () => randomWord(random, LETTERS, 1, 9).slice(0, 9)).join(' ');

  it('are not encoded again', () => {
    const anew = encoder(words);
    expect(anew(long).join('')).toBe(long);
    expect(anew(long)).toEqual([]);
  });

  it('are found behind another beginning and in front of another end, but for the pieces there', () => {
    const anew = encoder(words);
    const pieces = anew(long);
    expect(pieces.length).toBeGreaterThan(8);
    expect(
      anew(`${'another beginning '.repeat(20)}${long}${' and another end'.repeat(20)}`).length,
    ).toBeLessThan(8);
    expect(anew(long)).toEqual([]);
  });

  it('are known as a whole where there are no borders, the first one of a prompt by itself', () => {
    const anew = encoder(null);
    expect(anew(long)).toEqual([long]);
    expect(anew(long)).toEqual([]);
    expect(anew(long, true)).toEqual([long]);
    expect(anew(long, true)).toEqual([]);
    expect(anew(`${long}.`)).toEqual([`${long}.`]);
  });

  it('are not looked for where they are short', () => {
    const anew = encoder(words);
    expect(anew('short')).toEqual(['short']);
    expect(anew('short')).toEqual(['short']);
  });
});

describe('pieces of a text', () => {
  it('are the text, cut at borders, none of them short but the last', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('abc', ' ', '"', 'é', '\u0301', '\n'), { maxLength: 2000 }),
        (units) => {
          const text = units.join('');
          const pieces = [...piecesOf(text, words)];
          expect(pieces.join('')).toBe(text);
          for (const [i, piece] of pieces.slice(0, -1).entries()) {
            const next = pieces[i + 1]!;
            expect(piece.length).toBeGreaterThanOrEqual(32);
            expect(words.isBetween(piece.charCodeAt(piece.length - 1), next.charCodeAt(0))).toBe(true);
            expect(next.charCodeAt(1)).toBeLessThan(0x80);
          }
        },
      ),
      { numRuns: 50 },
    );
  });
});
