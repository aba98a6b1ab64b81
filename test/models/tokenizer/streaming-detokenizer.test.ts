import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StreamingDetokenizer } from '../../../models/tokenizer/streaming-detokenizer.js';
import { Tokenizer } from '../../../models/tokenizer/tokenizer.js';
import { draws } from '../../support/scale.js';
import { byteLevelFiles, SCRIPTS, sentencePieceFiles } from './tiny-tokenizers.js';

const byteLevel = new Tokenizer(byteLevelFiles());
const sentencePiece = new Tokenizer(sentencePieceFiles());

/** Pieces of text that a client would see, decoded one token at a time. */
function stream(tokenizer: Tokenizer, ids: Iterable<number>, skipSpecialTokens = false): string[] {
  const detokenizer = new StreamingDetokenizer(tokenizer, { skipSpecialTokens });
  const pieces = Array.from(ids, (id) => detokenizer.push([id]));
  return [...pieces, detokenizer.flush()];
}

/** UTF-8 as the platform decodes it, over all bytes at once. */
function wholeText(tokenizer: Tokenizer, ids: Iterable<number>): string {
  const bytes = Array.from(ids, (id) => [...tokenizer.tokenBytes(id)]).flat();
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

describe('StreamingDetokenizer', () => {
  it.each(SCRIPTS)('gives %j whole characters only, one byte per token', (text) => {
    const pieces = stream(byteLevel, new TextEncoder().encode(text));
    for (const piece of pieces) expect(piece).not.toMatch(/[\uFFFD\p{Surrogate}]/u);
    expect(pieces.join('')).toBe(text);
    expect(pieces.at(-1)).toBe('');
  });

  it('gives a character with the token that completes it', () => {
    expect(stream(byteLevel, [0xe2, 0x82, 0xac])).toEqual(['', '', '€', '']);
    expect(stream(byteLevel, [0xf0, 0x9f, 0x98, 0x80])).toEqual(['', '', '', '😀', '']);
  });

  it('replaces bytes as soon as they can no longer become a character, not before', () => {
    expect(stream(byteLevel, [0xe2, 0x82, 0x41])).toEqual(['', '', '\uFFFDA', '']);
    expect(stream(byteLevel, [0x80])).toEqual(['\uFFFD', '']);
    expect(stream(byteLevel, [0xc0, 0xaf])).toEqual(['\uFFFD', '\uFFFD', '']);
    expect(stream(byteLevel, [0xe0, 0x80])).toEqual(['', '\uFFFD\uFFFD', '']);
    expect(stream(byteLevel, [0xf0, 0x9f])).toEqual(['', '', '\uFFFD']);
  });

  it('gives marks in place of tokens, behind what is left of a character, skipped or not', () => {
    for (const skipSpecialTokens of [true, false]) {
      const marks = new Map([[300, '\udf01']]);
      const detokenizer = new StreamingDetokenizer(byteLevel, { skipSpecialTokens, marks });
      const pieces = [0x41, 300, 0xe2, 0x82, 300, 0x42].map((id) => detokenizer.push([id]));
      expect(pieces).toEqual(['A', '\udf01', '', '', '\uFFFD\udf01', 'B']);
    }
  });

  it('equals the text of all bytes for any sequence of tokens, valid or not', () => {
    const id = fc.oneof(fc.nat(255), fc.integer({ min: 0x80, max: 0xf8 }), fc.nat(303));
    fc.assert(
      fc.property(fc.array(id, { maxLength: 40 }), (ids) => {
        expect(stream(byteLevel, ids).join('')).toBe(wholeText(byteLevel, ids));
        expect(stream(byteLevel, ids).join('')).toBe(byteLevel.decode(ids));
        expect(stream(byteLevel, ids, true).join('')).toBe(
          byteLevel.decode(ids, { skipSpecialTokens: true }),
        );
      }),
      { numRuns: draws(100) },
    );
  });

  it('gives the same text however the tokens are grouped', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.array(fc.nat(4)), (text, sizes) => {
        const ids = [...new TextEncoder().encode(text)];
        const detokenizer = new StreamingDetokenizer(byteLevel);
        let out = '';
        for (const size of sizes) out += detokenizer.push(ids.splice(0, size));
        expect(out + detokenizer.push(ids) + detokenizer.flush()).toBe(text);
      }),
    );
  });

  it('holds an unfinished character over a special token that is skipped', () => {
    expect(stream(byteLevel, [0xe2, 300, 0x82, 0xac], true).join('')).toBe('€');
  });

  it('follows the leading-space rule of SentencePiece', () => {
    const ids = sentencePiece.encode('hi there', { addSpecialTokens: false });
    expect(stream(sentencePiece, ids).join('')).toBe('hi there');
    expect(stream(sentencePiece, [1, ...ids], true).join('')).toBe('hi there');
    const continued = new StreamingDetokenizer(sentencePiece, { continuesText: true });
    expect(continued.push(ids)).toBe(' hi there');
  });

  it('decodes SentencePiece byte tokens', () => {
    fc.assert(
      // A text's own lower one eighth block is SentencePiece's sign for a space, and comes back as one.
      fc.property(
        fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\u2581', '')),
        (text) => {
          const ids = sentencePiece.encode(text, { addSpecialTokens: false });
          expect(stream(sentencePiece, ids).join('')).toBe(text);
        },
      ),
    );
  });
});
