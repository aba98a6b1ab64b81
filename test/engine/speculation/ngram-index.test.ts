import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NgramIndex } from '../../../engine/speculation/ngram-index.js';

function propose(tokens: readonly number[], most: number, index = new NgramIndex()) {
  const target = new Int32Array(most);
  const { length, matchLength } = index.propose(Int32Array.from(tokens), tokens.length, target);
  return { draft: [...target.subarray(0, length)], matchLength };
}

/** The longest match of the whole sequence with itself, of one token too, the latest of equal ones, by trying every place. */
function naive(tokens: readonly number[], most: number) {
  let best = { place: -1, match: 0 };
  for (let place = tokens.length - 2; place >= 0; place--) {
    let match = 0;
    while (match < 32 && match <= place && tokens[place - match] === tokens[tokens.length - 1 - match])
      match++;
    if (match > best.match) best = { place, match };
  }
  if (best.place < 0) return { draft: [], matchLength: 0 };
  const draft: number[] = [];
  const at = (i: number) => (i < tokens.length ? tokens[i]! : draft[i - tokens.length]!);
  for (let i = 0; i < most; i++) draft.push(at(best.place + 1 + i));
  return { draft, matchLength: best.match };
}

describe('NgramIndex', () => {
  it('proposes what followed when the same tokens stood there before', () => {
    expect(propose([1, 2, 3, 4, 5, 9, 9, 1, 2], 3)).toEqual({ draft: [3, 4, 5], matchLength: 2 });
  });

  it('takes the longest match, and of equal ones the latest', () => {
    expect(propose([1, 2, 3, 7, 8, 2, 3, 6, 1, 2, 3], 1)).toEqual({ draft: [7], matchLength: 3 });
    expect(propose([2, 3, 7, 8, 2, 3, 6, 5, 2, 3], 1)).toEqual({ draft: [6], matchLength: 2 });
  });

  it('takes what followed the last token alone where the last two stood nowhere before', () => {
    expect(propose([1, 2, 3, 1, 4, 1], 2)).toEqual({ draft: [4, 1], matchLength: 1 });
    expect(propose([1, 2, 1, 4, 2, 4, 9, 1, 2], 1)).toEqual({ draft: [1], matchLength: 2 });
  });

  it('goes on with its own proposal where the match runs into the end', () => {
    expect(propose([5, 1, 2, 1, 2], 5).draft).toEqual([1, 2, 1, 2, 1]);
    expect(propose([7, 7, 7], 4).draft).toEqual([7, 7, 7, 7]);
  });

  it('proposes nothing where the ending is new, or the sequence too short', () => {
    expect(propose([1, 2, 3, 4], 4)).toEqual({ draft: [], matchLength: 0 });
    expect(propose([1], 4)).toEqual({ draft: [], matchLength: 0 });
    expect(propose([1, 2], 4)).toEqual({ draft: [], matchLength: 0 });
  });

  it('finds what a search of every place finds, asked after each token of a growing sequence', () => {
    const tokens = fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(
        tokens,
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 5 }),
        (all, most, step) => {
          const index = new NgramIndex();
          for (let length = 1; length <= all.length; length += step) {
            const known = all.slice(0, length);
            expect(propose(known, most, index)).toEqual(naive(known, most));
          }
        },
      ),
    );
  });
});
