import { describe, expect, it } from 'vitest';
import { BadWords } from '../../../engine/decoding/bad-words.js';

function banned(words: number[][], tokens: number[], length = tokens.length): number[] {
  const badWords = new BadWords(words.map((word) => Int32Array.from(word)));
  const found = [...badWords.single];
  badWords.forEachCompletion(Int32Array.from(tokens), length, (token) => found.push(token));
  return found;
}

describe('bad words', () => {
  it('of one token are always banned, each once', () => {
    expect(banned([[5], [7], [5]], [1])).toEqual([5, 7]);
  });

  it('of several tokens ban their last one where the others stand', () => {
    const words = [
      [7, 3, 9],
      [3, 9],
      [8, 3, 9, 4],
    ];
    expect(banned(words, [2, 7, 3])).toEqual([9, 9]);
    expect(banned(words, [2, 6, 3])).toEqual([9]);
    expect(banned(words, [8, 3, 9])).toEqual([4]);
    expect(banned(words, [3, 7])).toEqual([]);
  });

  it('do not count tokens behind the end, nor in front of the beginning', () => {
    expect(banned([[7, 3, 9]], [7, 3, 1], 2)).toEqual([9]);
    expect(banned([[7, 3, 9]], [7, 3, 1], 3)).toEqual([]);
    expect(banned([[1, 2, 3, 4]], [2, 3])).toEqual([]);
  });
});
