import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Tokenizer } from '../../../models/tokenizer/tokenizer.js';
import { TokenizerError } from '../../../models/tokenizer/tokenizer-json.js';
import { byteLevelFiles, SCRIPTS, sentencePieceFiles } from './tiny-tokenizers.js';

const byteLevel = new Tokenizer(byteLevelFiles());
const sentencePiece = new Tokenizer(sentencePieceFiles());
const plain = { addSpecialTokens: false };
const BOS = byteLevel.bosTokenId!;

describe('special tokens', () => {
  it('are recognised by default, the longest first', () => {
    expect([...byteLevel.encode('<|x|><|x|>long<|end|>', plain)]).toEqual([BOS, 302, 300]);
  });

  it('are plain text where they are not allowed, even if merges could spell them', () => {
    const ids = byteLevel.encode('a<|x|>b<|end|>', { addSpecialTokens: false, allowSpecial: false });
    for (const id of ids) expect(byteLevel.specialTokenIds.has(id)).toBe(false);
    expect(byteLevel.decode(ids)).toBe('a<|x|>b<|end|>');
  });

  it('leave added tokens that are not special in force', () => {
    expect([...byteLevel.encode('<tool>', { addSpecialTokens: false, allowSpecial: false })]).toEqual([301]);
  });

  it('swallow white space where the token says so', () => {
    expect(byteLevel.decode(byteLevel.encode('a<|end|> \n b', plain))).toBe('a<|end|>b');
  });

  it('of SentencePiece models are text in a user text', () => {
    const ids = sentencePiece.encode('</s><s>', { addSpecialTokens: false, allowSpecial: false });
    expect(ids.some((id) => id < 3)).toBe(false);
    expect(sentencePiece.decode(ids)).toBe('</s><s>');
  });

  it('never appear in a text that may not hold them', () => {
    const bits = fc.constantFrom('<|x|>', '<|end|>', '<|', 'x', '|>', 'long', '<', '>', ' ', 'é');
    fc.assert(
      fc.property(fc.array(bits), (parts) => {
        const text = parts.join('');
        const ids = byteLevel.encode(text, { addSpecialTokens: false, allowSpecial: false });
        expect(ids.every((id) => !byteLevel.specialTokenIds.has(id))).toBe(true);
        expect(byteLevel.decode(ids)).toBe(text);
      }),
    );
  });
});

describe('segments', () => {
  it('let words but not special tokens run across a border', () => {
    const joined = byteLevel.encodeSegments([
      { text: '<|x|>', special: true },
      { text: 'say he', special: true },
      { text: 'llo<|x|>', special: false },
      { text: '<|', special: true },
      { text: 'x|>', special: true },
    ]);
    const hello = byteLevel.tokenId('hello');
    expect(joined[0]).toBe(BOS);
    expect(byteLevel.tokenId('Ġhello')).not.toBeNull();
    expect([...joined]).toContain(byteLevel.tokenId('Ġhello'));
    expect([...joined].filter((id) => id === BOS)).toHaveLength(1);
    expect([...joined]).not.toContain(hello);
    expect(byteLevel.decode(joined)).toBe('<|x|>say hello<|x|><|x|>');
  });

  it('give what the joined text gives when all may hold special tokens and none is cut', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('<|x|>', 'he', 'llo', ' ', '<|end|>')), (texts) => {
        const segments = texts.map((text) => ({ text, special: true }));
        expect(byteLevel.encodeSegments(segments)).toEqual(byteLevel.encode(texts.join(''), plain));
      }),
    );
  });
});

describe('BOS', () => {
  it('comes from the post-processor, once', () => {
    expect([...byteLevel.encode('h')]).toEqual([BOS, 'h'.charCodeAt(0)]);
    expect([...byteLevel.encode('<|x|>h')]).toEqual([BOS, 'h'.charCodeAt(0)]);
    expect([...byteLevel.encode('')]).toEqual([BOS]);
    expect([...byteLevel.encode('h', plain)]).toEqual(['h'.charCodeAt(0)]);
  });

  it('and EOS follow add_bos_token and add_eos_token where those are given', () => {
    const files = byteLevelFiles();
    const config = { ...files.tokenizerConfig, add_bos_token: false, add_eos_token: true };
    const tokenizer = new Tokenizer({ ...files, tokenizerConfig: config });
    expect([...tokenizer.encode('h')]).toEqual(['h'.charCodeAt(0), 300]);
  });
});

describe('decode', () => {
  it.each(SCRIPTS)('returns the text %j', (text) => {
    expect(byteLevel.decode(byteLevel.encode(text, plain))).toBe(text);
    expect(sentencePiece.decode(sentencePiece.encode(text, plain))).toBe(text);
  });

  it('returns any text; SentencePiece writes a space as U+2581 and cannot tell the two apart afterwards', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(byteLevel.decode(byteLevel.encode(text, plain))).toBe(text);
        const withSpaces = text.replaceAll('\u2581', ' ');
        expect(sentencePiece.decode(sentencePiece.encode(text, plain))).toBe(withSpaces);
      }),
      { examples: [['\u2581'], ['a\u2581b']] },
    );
  });

  it('skips special tokens on request and ids outside the vocabulary always', () => {
    const ids = [BOS, 104, 300, 105, 99_999, -1];
    expect(byteLevel.decode(ids, { skipSpecialTokens: true })).toBe('hi');
    expect(byteLevel.decode(ids)).toBe('<|x|>h<|end|>i');
  });

  it('drops the space that SentencePiece puts before the first word, and only that one', () => {
    expect([...sentencePiece.encode('hi there')]).toEqual([1, ...sentencePiece.encode('hi there', plain)]);
    expect(sentencePiece.decode(sentencePiece.encode('  hi', plain))).toBe('  hi');
  });
});

describe('token bytes', () => {
  it('are the raw bytes of byte-level and byte-fallback tokens', () => {
    for (let byte = 0; byte < 256; byte++) {
      expect([...byteLevel.tokenBytes(byte)]).toEqual([byte]);
      expect([...sentencePiece.tokenBytes(byte + 3)]).toEqual([byte]);
    }
    expect(byteLevel.tokenBytes(301)).toEqual(new TextEncoder().encode('<tool>'));
    expect(sentencePiece.tokenBytes(sentencePiece.tokenId('▁hi')!)).toEqual(new TextEncoder().encode(' hi'));
    expect(byteLevel.tokenBytes(99_999)).toHaveLength(0);
  });
});

describe('a file that is no tokenizer', () => {
  it.each([
    [null, /should be an object, found null/],
    [{ model: {} }, /model\.vocab should be .*, found nothing/],
    [
      { model: { vocab: {} }, added_tokens: [{ id: 1 }] },
      /added_tokens\[0\]\.content should be .*, found nothing/,
    ],
    [{ model: { vocab: {}, type: 'BPE', merges: [] }, decoder: { type: 'CTC' } }, /decoder CTC/],
    [{ model: { vocab: {}, type: 'BPE', merges: [] }, normalizer: { type: 'Fancy' } }, /Fancy/],
  ])('is refused: %j', (tokenizerJson, message) => {
    const build = () => new Tokenizer({ tokenizerJson, tokenizerConfig: {} });
    expect(build).toThrow(TokenizerError);
    expect(build).toThrow(message);
  });
});
