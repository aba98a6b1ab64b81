import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { WordEndings } from '../../../engine/decoding/word-endings.js';
import { countedReads } from '../../support/counted-reads.js';

const token = fc.integer({ min: 0, max: 2 });
const words = fc.array(fc.array(token, { minLength: 1, maxLength: 6 }), { maxLength: 30 });

it('finds the words that tokens end with, whatever words there are', () => {
  fc.assert(
    fc.property(words, fc.array(token, { maxLength: 9 }), fc.nat(3), (list, tokens, behind) => {
      const length = Math.max(0, tokens.length - behind);
      const found: number[] = [];
      const endings = new WordEndings(list.map((word) => Int32Array.from(word)));
      endings.forEach(Int32Array.from(tokens), length, (place) => found.push(place));
      const text = (numbers: readonly number[]) => numbers.join('');
      const expected = list.flatMap((word, place) =>
        text(tokens.slice(0, length)).endsWith(text(word)) ? [place] : [],
      );
      expect(found.sort((a, b) => a - b)).toEqual(expected);
    }),
    { seed: 1 },
  );
});

it('reads each token once, however many long words end alike', () => {
  const sameToken = new Int32Array(4000).fill(7);
  const list = Array.from({ length: 500 }, (_, i) => sameToken.slice(0, 1000 + i));
  const { numbers, reads } = countedReads(sameToken);
  let found = 0;
  new WordEndings(list).forEach(numbers, numbers.length, () => found++);
  expect(found).toBe(500);
  expect(reads()).toBeLessThanOrEqual(1500);
});

it('sorts words that end alike in steps that follow their tokens', () => {
  const counted = Array.from({ length: 300 }, (_, i) =>
    countedReads(Int32Array.from({ length: 1000 }, (_, place) => (place === i ? 1 : 0))),
  );
  new WordEndings(counted.map(({ numbers }) => numbers));
  const reads = counted.reduce((sum, word) => sum + word.reads(), 0);
  // Comparing whole words would take some 300 x 9 x 2 x 1000 reads.
  expect(reads).toBeLessThan(4 * 300 * 1000);
});
