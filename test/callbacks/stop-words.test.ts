import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeWordList,
  encodeWordList,
  endingTokens,
  endsWithStopWord,
} from '../../callbacks/stop-words.js';

describe('the [1, 2, n] layout of words', () => {
  it('is the one of the contract', () => {
    const { shape, data } = encodeWordList([
      [5, 7, 3],
      [9, 2],
    ]);
    expect(shape).toEqual([1, 2, 5]);
    expect([...data]).toEqual([5, 7, 3, 9, 2, 3, 5, -1, -1, -1]);
  });

  it('comes back as it went in', () => {
    const words = fc.array(fc.array(fc.nat(1000), { minLength: 1, maxLength: 5 }), { maxLength: 6 });
    fc.assert(
      fc.property(words, (given) => {
        const { shape, data } = encodeWordList(given);
        expect(decodeWordList('stop_words_list', shape, data).map((word) => [...word])).toEqual(given);
      }),
    );
  });

  it.each([[[2, 1]], [[0, -1]], [[3, -1]], [[-2, -1]]])(
    'refuses the offsets %j over two tokens',
    (offsets) => {
      const data = Int32Array.of(1, 2, ...offsets);
      expect(() => decodeWordList('stop_words_list', [1, 2, 2], data)).toThrow(
        /stop_words_list has the offset/,
      );
    },
  );
});

describe('endsWithStopWord', () => {
  const tokens = Int32Array.of(1, 2, 3, 4, 5, 0, 0);
  const words = (...list: number[][]) => list.map((word) => Int32Array.from(word));

  it('matches the end of the generated tokens only', () => {
    expect(endsWithStopWord(words([4, 5]), tokens, 0, 5)).toBe(true);
    expect(endsWithStopWord(words([3, 4]), tokens, 0, 5)).toBe(false);
    expect(endsWithStopWord(words([9], [5]), tokens, 4, 5)).toBe(true);
    expect(endsWithStopWord(words([4, 5]), tokens, 4, 5)).toBe(false);
    expect(endsWithStopWord([], tokens, 0, 5)).toBe(false);
  });
});

describe('endingTokens', () => {
  it('are the end token and the stop words of one token, each once, of the vocabulary', () => {
    const words = [[7], [3, 4], [5], [7], [2], [10], []].map((word) => Int32Array.from(word));
    expect([...endingTokens(2, words, 10)]).toEqual([2, 7, 5]);
    expect([...endingTokens(-1, words, 10)]).toEqual([7, 5, 2]);
    expect([...endingTokens(-1, [], 10)]).toEqual([]);
  });
});
