import { describe, expect, it } from 'vitest';
import { Automaton } from '../../../engine/guided/automaton.js';
import { GrammarMatcher, GuideTimeoutError } from '../../../engine/guided/grammar-matcher.js';
import { guideGrammar } from '../../../engine/guided/guide.js';
import { tokenMask } from '../../../engine/guided/token-mask.js';
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

  it('ends with its time', () => {
    const trie = new TokenTrie(Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)));
    const matcher = new GrammarMatcher(new Automaton(guideGrammar({ type: 'json', guide: '' })));
    matcher.limitUntil(performance.now() - 1);
    expect(() => tokenMask(matcher, trie, matcher.start)).toThrow(GuideTimeoutError);
    matcher.limitUntil(Number.POSITIVE_INFINITY);
    expect(fitting(tokenMask(matcher, trie, matcher.start), 256)).toEqual([0x7b]);
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
