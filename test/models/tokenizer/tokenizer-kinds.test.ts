import { describe, expect, it } from 'vitest';
import { StreamingDetokenizer } from '../../../models/tokenizer/streaming-detokenizer.js';
import { Tokenizer } from '../../../models/tokenizer/tokenizer.js';
import { byteLevelFiles, sentencePieceFiles, unigramFiles, wordPieceFiles } from './tiny-tokenizers.js';

// Ids and texts as Hugging Face's tokenizers 0.23 (Rust) gives them for the same tokenizer.json.
const expected: [string, () => ConstructorParameters<typeof Tokenizer>[0], [string, number[], string][]][] = [
  [
    'WordPiece',
    wordPieceFiles,
    [
      ['Hello, playing', [1, 3, 7, 4, 5, 2], 'hello , playing'],
      ['CAFÉ plays', [1, 11, 12, 4, 6, 2], 'cafe plays'],
      ['[CLS] hello', [1, 1, 3, 2], 'hello'],
      ['', [1, 2], ''],
    ],
  ],
  [
    'Unigram',
    unigramFiles,
    [
      ['h', [3, 5], 'h'],
      ['<s>h</s> h', [1, 5, 2, 3, 5], 'h h'],
      ['say', [3, 8, 0], 's'],
      ['', [], ''],
    ],
  ],
  [
    'SentencePiece BPE',
    sentencePieceFiles,
    [
      ['  hi', [1, 273, 270], '  hi'],
      ['hi</s> hi', [1, 270, 2, 259, 270], 'hi  hi'],
      ['CAFÉ', [1, 259, 70, 68, 73, 198, 140], 'CAFÉ'],
    ],
  ],
  [
    'byte-level BPE',
    byteLevelFiles,
    [
      ['[CLS] hello', [264, 91, 67, 76, 83, 93, 260], '[CLS] hello'],
      ['CAFÉ', [264, 67, 65, 70, 195, 137], 'CAFÉ'],
    ],
  ],
];

describe.each(expected)('%s', (_, files, cases) => {
  const tokenizer = new Tokenizer(files());

  it.each(cases)('encodes and decodes %j', (text, ids, decoded) => {
    expect([...tokenizer.encode(text)]).toEqual(ids);
    expect(tokenizer.decode(ids, { skipSpecialTokens: true })).toBe(decoded);
    const detokenizer = new StreamingDetokenizer(tokenizer);
    expect(ids.map((id) => detokenizer.push([id])).join('') + detokenizer.flush()).toBe(decoded);
  });
});

describe('control tokens in a user text', () => {
  it.each([
    ['WordPiece', wordPieceFiles, '[CLS] hello', [1, 8, 10, 6, 9, 3, 2]],
    ['Unigram', unigramFiles, '<s>h</s>', [3, 7, 8, 9, 5, 7, 10, 8, 9]],
  ])('are text for %s', (_, files, text, ids) => {
    expect([...new Tokenizer(files()).encode(text, { allowSpecial: false })]).toEqual(ids);
  });
});

describe('added tokens that are not special', () => {
  it('are looked for in the normalized text', () => {
    const tokenizer = new Tokenizer(unigramFiles());
    expect([...tokenizer.encode('hi HI')]).toEqual([12, 3, 12]);
  });

  it('may have to stand alone', () => {
    const files = byteLevelFiles();
    const json = files.tokenizerJson as { added_tokens: object[] };
    json.added_tokens.push({ id: 303, content: 'cat', single_word: true, normalized: false });
    const tokenizer = new Tokenizer(files);
    const count = (text: string) => [...tokenizer.encode(text)].filter((id) => id === 303).length;
    expect(count('cat, cat. concat cats _cat')).toBe(2);
  });
});
