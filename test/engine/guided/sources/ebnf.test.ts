import { describe, expect, it } from 'vitest';
import { matcherOf, matches } from '../follow.js';

function accepted(grammar: string, texts: readonly string[]): string[] {
  const matcher = matcherOf('ebnf_grammar', grammar);
  return texts.filter((text) => matches(matcher, text));
}

describe('a grammar in EBNF', () => {
  it('has rules, alternatives, groups, repetitions, classes, escapes and comments', () => {
    const grammar = `
      # a list
      root ::= "[" (item ("," ws item){0,2})? "]" # closed
      item ::= number
             | 'q' [^"\\\\\\n] "\\u00e9"? | "\\x41" "\\"" .
      number ::= [0-9]+
      ws ::= " "*`;
    expect(
      accepted(grammar, [
        '[]',
        '[1]',
        '[1,2]',
        '[1, 22,3]',
        '[1,2,3,4]',
        '[qx]',
        '[qxé]',
        '[q"]',
        '[A"日]',
        '[1',
        '1',
      ]),
    ).toEqual(['[]', '[1]', '[1,2]', '[1, 22,3]', '[qx]', '[qxé]', '[A"日]']);
  });

  it('may nest 200 parentheses', () => {
    const nested = (depth: number) => `root ::= ${'('.repeat(depth)}"a"${')'.repeat(depth)}`;
    expect(accepted(nested(200), ['a', 'b'])).toEqual(['a']);
    expect(() => accepted(nested(201), ['a'])).toThrow('nested deeper than 200');
  });

  it('may call its rules from within, to any depth', () => {
    const deep = 5000;
    const grammar = 'root ::= "(" root ")" | "x"';
    expect(accepted(grammar, [`${'('.repeat(deep)}x${')'.repeat(deep)}`, '((x)'])).toHaveLength(1);
  });

  it('may recur at its end without end', () => {
    expect(accepted('root ::= "a" root | ""', ['', 'a'.repeat(100_000), 'ab'])).toHaveLength(2);
  });

  it('may be ambiguous', () => {
    expect(accepted('root ::= (a | a a | "aa")*\na ::= "a" | ""', ['', 'a'.repeat(500), 'ab'])).toHaveLength(
      2,
    );
  });

  it('leads nobody into what cannot be completed', () => {
    const matcher = matcherOf('ebnf_grammar', 'root ::= "a" dead | "ab"\ndead ::= "x" dead');
    expect(matcher.follow(matcher.start, Buffer.from('ax'))).toBeNull();
    expect(matches(matcher, 'ab')).toBe(true);
  });

  it.each([
    ['root := "a"', 'line 1, column 6: ::= is expected after root'],
    ['root ::= "a', 'a text is not closed by "'],
    ['root ::= [a', 'a class is not closed by ]'],
    ['root ::= (a', 'a ( is not closed'],
    ['root ::= "a"\n\n  )', 'line 3, column 3'],
    ['root ::= b', 'uses the rule b, which the grammar does not have'],
    ['start ::= "a"', 'has no rule root'],
    ['root ::= "a"\nroot ::= "b"', 'line 2, column 9: the rule root is defined twice'],
    ['root ::= root "a" | "b"', 'The rule root is left-recursive'],
    ['root ::= x? root "a" | "b"\nx ::= "x"', 'left-recursive'],
    ['root ::= a\na ::= b "x" | "y"\nb ::= e a\ne ::= ""', 'left-recursive'],
    ['root ::= "a" root', 'No text matches the guide'],
    ['root ::= "\\q"', '\\q is no escape'],
    ['root ::= "\\ud800"', 'is no character'],
    ['root ::= "a"{2,1}', 'ends before it begins'],
    ['root ::= "a"{99999}', 'larger than 10000'],
    ['root ::= a (= "b")\na ::= "a"', 'look-ahead assertions are not supported'],
    ['root ::= "\ud83d"', 'half a surrogate pair is no character'],
    ['root ::= [\udfff]', 'half a surrogate pair is no character'],
    [`root ::= ${'('.repeat(300)}"a"${')'.repeat(300)}`, 'nested deeper than 200'],
    ['', 'has no rule root'],
  ])('%s is refused: %s', (grammar, why) => {
    expect(() => matcherOf('ebnf_grammar', grammar)).toThrow(why);
  });
});
