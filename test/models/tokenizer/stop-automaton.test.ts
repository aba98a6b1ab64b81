import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StopAutomaton } from '../../../models/tokenizer/stop-automaton.js';
import { StopStringMatcher, StopStrings } from '../../../models/tokenizer/stop-strings.js';

const letter = fc.constantFrom('a', 'b', '\ud83d', '\ude00');
const text = fc.string({ unit: letter, maxLength: 40 });
const stops = fc.array(fc.string({ unit: letter, minLength: 1, maxLength: 7 }), { maxLength: 6 });

/** The longest end of the text that begins one of the words. */
function longestBeginning(seen: string, words: readonly string[]): number {
  for (let length = seen.length; length > 0; length--) {
    if (words.some((word) => word.startsWith(seen.slice(-length)))) return length;
  }
  return 0;
}

describe('StopAutomaton', () => {
  it('knows after every unit what the text ends with, and what could still come', () => {
    fc.assert(
      fc.property(text, stops, (whole, words) => {
        const automaton = new StopAutomaton(words);
        let state = 0;
        for (let end = 1; end <= whole.length; end++) {
          state = automaton.step(state, whole.charCodeAt(end - 1));
          const seen = whole.slice(0, end);
          const ending = words.filter((word) => seen.endsWith(word));
          const longest = ending.reduce((best, word) => (word.length > best.length ? word : best), '');
          expect(automaton.stopOf(state)).toBe(longest === '' ? -1 : words.indexOf(longest));
          expect(automaton.depthOf(state)).toBe(longestBeginning(seen, words));
        }
      }),
    );
  });

  it('has a state for each beginning of a word and no more, however the words are alike', () => {
    fc.assert(
      fc.property(stops, (words) => {
        const beginnings = new Set(words.flatMap((word) => Array.from(word, (_, i) => word.slice(0, i + 1))));
        const units = new Set(words.flatMap((word) => word.split('').map((_, i) => word.slice(0, i + 1))));
        expect(new StopAutomaton(words).numStates).toBe(1 + units.size);
        expect(beginnings.size).toBeLessThanOrEqual(units.size);
      }),
    );
  });
});

describe('StopStrings', () => {
  it('are made into one automaton for any number of texts, which do not disturb each other', () => {
    const shared = new StopStrings(['abc', 'bd']);
    expect(shared.automaton).toBe(shared.automaton);
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'd'), maxLength: 3 })),
        (pieces) => {
          const [one, other, alone] = [
            new StopStringMatcher(shared),
            new StopStringMatcher(shared),
            new StopStringMatcher(['abc', 'bd']),
          ];
          for (const piece of pieces) {
            other.push([...piece].reverse().join(''));
            expect(one.push(piece)).toEqual(alone.push(piece));
          }
          expect(one.end()).toEqual(alone.end());
        },
      ),
    );
  });

  it('keeps its own copy of the list', () => {
    const list = ['a'];
    const shared = new StopStrings(list);
    list[0] = 'b';
    expect(shared.texts).toEqual(['a']);
  });
});
