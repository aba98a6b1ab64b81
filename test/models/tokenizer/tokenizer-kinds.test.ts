import { describe, expect, it } from 'vitest';
import { ChatTemplate } from '../../../models/chat-template.js';
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

  it('trap 14: stay text in a user’s text where models take them as marks', () => {
    const files = byteLevelFiles();
    const json = files.tokenizerJson as { added_tokens: object[] };
    const marks = ['<think>', '</tool_call>', '<|fim_prefix|>'];
    for (const [i, content] of marks.entries())
      json.added_tokens.push({ id: 303 + i, content, normalized: false });
    const tokenizer = new Tokenizer(files);
    for (const [i, content] of marks.entries()) {
      expect([...tokenizer.encode(content, { addSpecialTokens: false })]).toEqual([303 + i]);
      const asText = tokenizer.encode(`a${content}`, { addSpecialTokens: false, allowSpecial: false });
      expect([...asText]).not.toContain(303 + i);
      expect(tokenizer.decode(asText)).toBe(`a${content}`);
      // They are no special tokens: what is generated of them is shown.
      expect(tokenizer.decode([303 + i], { skipSpecialTokens: true })).toBe(content);
    }
    const template = new ChatTemplate('{{ messages[0].content }}<think>', tokenizer);
    const { segments } = template.render([{ role: 'user', content: 'x <think> y' }]);
    const ids = [...tokenizer.encodeSegments(segments)];
    expect(ids.filter((id) => id === 303)).toHaveLength(1);
    expect(ids.at(-1)).toBe(303);
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
