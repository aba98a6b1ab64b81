import { describe, expect, it } from 'vitest';
import { GuideBudgetError } from '../../../engine/guided/guide-budget.js';
import { MaskWalk, tokenMask } from '../../../engine/guided/token-mask.js';
import { TokenTrie } from '../../../engine/guided/token-trie.js';
import { Random } from '../../../tools/soak/random.js';
import { matcherOf } from './follow.js';

function fitting(mask: Int32Array, vocabSize: number): number[] {
  return Array.from({ length: vocabSize }, (_, token) => token).filter(
    (t) => mask[t >> 5]! & (1 << (t & 31)),
  );
}

describe('the mask of a place', () => {
  it('has exactly the tokens whose bytes all fit, also where several are alike or begin alike', () => {
    const random = new Random(7);
    const bytesOf = Array.from({ length: 700 }, (_, token) => {
      if (token % 50 === 3) return token % 100 === 3 ? null : new Uint8Array(0);
      const length = random.integer(1, 6);
      return Uint8Array.from({ length }, () => random.pick([0x61, 0x62, 0x22, 0x2c, 0x31, 0xc3, 0xa9]));
    });
    const trie = new TokenTrie(bytesOf);
    const matcher = matcherOf('regex', '("[a-b,é]*"|1+)(,("[a-b,é]*"|1+))*');
    for (const text of ['', '"', '"a', '1', '1,', '"\u00e9', '""']) {
      const places = matcher.follow(matcher.start, Buffer.from(text))!;
      const expected = bytesOf.flatMap((bytes, token) =>
        bytes !== null && bytes.length > 0 && matcher.follow(places, bytes) !== null ? [token] : [],
      );
      expect(fitting(tokenMask(matcher, trie, places), 700)).toEqual(expected);
    }
  });

  it('is the same where it is made in pieces, and where all was forgotten in between', () => {
    const bytesOf = Array.from({ length: 400 }, (_, token) => Buffer.from(token.toString(7)));
    const trie = new TokenTrie(bytesOf);
    const whole = matcherOf('regex', '([0-3]{1,40}|.*[4-6].{30})');
    const pieces = matcherOf('regex', '([0-3]{1,40}|.*[4-6].{30})');
    for (let text = ''; text.length < 20; text += text.length % 3) {
      const expected = tokenMask(whole, trie, whole.follow(whole.start, Buffer.from(text))!);
      pieces.forget();
      const places = pieces.follow(pieces.start, Buffer.from(text))!;
      const walk = new MaskWalk(pieces, trie, places);
      let numPieces = 0;
      while (places.mask === null) {
        walk.advance(1);
        numPieces++;
      }
      expect(places.mask).toEqual(expected);
      expect(numPieces).toBeGreaterThan(1);
    }
  });

  it('costs what it costs, whatever others have asked for before', () => {
    // Tokens of up to twelve letters; each letter of the first half adds a way to read the text.
    const random = new Random(3);
    const bytesOf = Array.from({ length: 600 }, () =>
      Uint8Array.from({ length: random.integer(4, 12) }, () => random.pick([0x61, 0x62, 0x79, 0x7a])),
    );
    const trie = new TokenTrie(bytesOf);
    const MAX_STEPS = 100_000;
    const outcome = (length: number, before: readonly number[]): string => {
      const matcher = matcherOf('regex', '(.*[a-m].{1200}|.*[n-z].{1100})');
      const at = (count: number) => matcher.follow(matcher.start, Buffer.from('az'.repeat(count)))!;
      for (const other of before) {
        try {
          new MaskWalk(matcher, trie, at(other), MAX_STEPS).advance(Number.POSITIVE_INFINITY);
        } catch (error) {
          if (!(error instanceof GuideBudgetError)) throw error;
        }
      }
      try {
        const places = at(length);
        new MaskWalk(matcher, trie, places, MAX_STEPS).advance(Number.POSITIVE_INFINITY);
        return `mask ${fitting(places.mask!, 600).length}`;
      } catch (error) {
        return String(error);
      }
    };
    // The first length that is too much alone is also the first among others.
    let length = 1;
    while (outcome(length, []).startsWith('mask')) length += 4;
    expect(outcome(length, [])).toContain(`takes more than ${MAX_STEPS} steps`);
    for (const before of [[length - 4], [length + 4, length - 1], [1, 2, 3, length + 1]]) {
      expect(outcome(length, before)).toBe(outcome(length, []));
      expect(outcome(length - 4, before)).toBe(outcome(length - 4, []));
    }
  });

  it('is refused where a text can be read in too many ways at once', () => {
    const matcher = matcherOf(
      'ebnf_grammar',
      'root ::= (x | y)* \nx ::= "a" x "b" | "a"\ny ::= "a" x "c" | "a" y "d" | "a"',
    );
    expect(() => matcher.follow(matcher.start, Buffer.from('a'.repeat(10_000)))).toThrow(
      'can be read in more than 4096 ways at once',
    );
  });
});
