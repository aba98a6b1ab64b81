import { describe, expect, it } from 'vitest';
import { checkedGrammar } from '../../../engine/guided/check-grammar.js';
import { chars, EMPTY, type Expr, optional, repeat, seq, text } from '../../../engine/guided/grammar.js';
import {
  ReadingWorkError,
  readingWork,
  spend,
  withinReadingWork,
} from '../../../engine/guided/reading-work.js';

describe('the work of reading a guide', () => {
  const spendOnes = (count: number) => () => {
    for (let i = 0; i < count; i++) spend(1);
    return count;
  };

  it('has a limit, which counts for one guide alone', () => {
    for (let guide = 0; guide < 2; guide++) {
      expect(withinReadingWork(10, spendOnes(10))).toBe(10);
      expect(readingWork()).toBe(10);
      expect(() => withinReadingWork(10, spendOnes(11))).toThrow(ReadingWorkError);
      expect(() => withinReadingWork(10, () => spend(11))).toThrow('it takes more than 10 steps');
    }
  });

  it('has none outside of reading', () => {
    expect(() => withinReadingWork(1, () => spend(2))).toThrow(ReadingWorkError);
    expect(() => spend(1e9)).not.toThrow();
  });
});

describe('checking a grammar', () => {
  const workOf = (root: Expr) => {
    withinReadingWork(Number.POSITIVE_INFINITY, () =>
      checkedGrammar({ root: 'root', rules: new Map([['root', root]]) }),
    );
    return readingWork();
  };

  it('counts every part in every pass', () => {
    const ofParts = (count: number) => workOf(seq(...Array<Expr>(count).fill(optional(chars([0x61, 0x61])))));
    // An optional character is two parts. Names, users (twice), pruning, reachable rules and first rules look at both;
    // what can be completed and what can be empty (twice) is known without the character.
    expect(ofParts(20) - ofParts(10)).toBe(10 * (6 * 2 + 3));
  });

  it('takes out what can never be completed, wherever it is', () => {
    const a = text('a');
    const nothing = chars();
    const checked = (root: Expr) =>
      checkedGrammar({ root: 'root', rules: new Map([['root', root]]) }).rules.get('root');
    expect(checked({ kind: 'alt', items: [a, seq(text('x'), nothing)] })).toEqual({
      kind: 'alt',
      items: [a],
    });
    expect(checked(seq(a, repeat(nothing, 0, null)))).toEqual(seq(a, EMPTY));
    expect(() => checked(seq(a, repeat(nothing, 1, null)))).toThrow('can never be completed');
  });
});
