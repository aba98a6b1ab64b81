import fc from 'fast-check';
import type { Token, Tokens } from 'marked';
import { describe, expect, it } from 'vitest';
import {
  MATH_SYNTAX,
  MAX_DISPLAY,
  MAX_INLINE,
  withoutMath,
} from '../../../../../../../src/server/dashboard/page/chat/math/math-syntax.js';
import { blocksOf } from '../../../../../../../src/texts/markdown-blocks.js';

/** The formulas of a text, those in lines of their own in brackets. */
function formulas(text: string): string[] {
  const found: string[] = [];
  const walk = (tokens: readonly Token[]): void => {
    for (const token of tokens) {
      if (token.type === 'math') found.push(token.isDisplay ? `[${token.tex}]` : token.tex);
      walk((token as Tokens.Generic).tokens ?? []);
      walk((token as Tokens.Generic).items ?? []);
      const { header = [], rows = [] } = token as Tokens.Generic & Partial<Tokens.Table>;
      for (const { tokens } of [...header, ...rows.flat()]) walk(tokens);
    }
  };
  walk(blocksOf(text, MATH_SYNTAX));
  return found;
}

describe('formulas of a text', () => {
  it.each<[string, string[]]>([
    [String.raw`So \(a^2\) and \(b_1\).`, ['a^2', 'b_1']],
    [String.raw`\(\int_0^1 x\,dx\)`, [String.raw`\int_0^1 x\,dx`]],
    ['Let $x_1$ and $y*2$ be *so* and $z*3$', ['x_1', 'y*2', 'z*3']],
    ['The $n$th and the $k$-th, of $100$', ['n', 'k', '100']],
    ['$$\nx = 1\n$$', ['[x = 1]']],
    ['Thus:\n$$\na\n- b\n= c\n$$\nand on', ['[a\n- b\n= c]']],
    ['\\[\nx \\\\[2pt]\ny\n\\]', ['[x \\\\[2pt]\ny]']],
    ['In a line $$x$$ and \\[y\\] too', ['[x]', '[y]']],
    ['- one $a$\n- two\n  $$\n  b\n  $$\n', ['a', '[b]']],
    ['| a | b |\n|---|---|\n| $x$ | \\(y\\) |', ['x', 'y']],
    ['> quoted $q$', ['q']],
    ['**bold $b$** and *a $c_1$ d*', ['b', 'c_1']],
    [String.raw`\(\text{a \) b}\)`, [String.raw`\text{a`]],
    [String.raw`\(a \\\) b`, [String.raw`a \\`]],
    [String.raw`$a \$ b$`, [String.raw`a \$ b`]],
    ['$5x + 3$ and $5 = x$', ['5x + 3', '5 = x']],
    ['sum=$x$, ($y$)', ['x', 'y']],
  ])('are read in %j', (text, expected) => {
    expect(formulas(text)).toEqual(expected);
  });

  it.each([
    'It costs $5 and $6.',
    'From $5-$6, or $5, $6 and $7.',
    'US$5 and CA$6 make 11$',
    '$20/month vs $30/month',
    '$5, which are 4 euros, and 10$ more',
    'export $HOME and $PATH, $HOME/$USER, $HOME$PATH',
    String.raw`It costs \$5 and \$6.`,
    String.raw`escaped \\(a\\) and \\[b\\]`,
    '`$a$` and ``\\(b\\)`` and `$`5 and `$`6',
    'a $ b $ c, a$b$c',
    '```tex\n$$\nx\n$$\n\\(a\\)\n```',
    '~~~\n$a$\n~~~',
    '    $a$ in indented code',
    '$open `code$ closed`',
    '$$\n\n$$',
    '\\(\\) \\[ \\]',
    '\\[ a\n\nb \\]',
    `$${'x'.repeat(MAX_INLINE + 1)}$`,
    `\\(${'x'.repeat(MAX_INLINE + 1)}\\)`,
    `$$${'x'.repeat(MAX_DISPLAY + 1)}$$`,
    '$a\nb$',
    '$$ not closed',
    '\\( not closed',
  ])('are not read in other texts, of which this is number %#', (text) => {
    expect(formulas(text)).toEqual([]);
  });

  it('take nothing from the text around them', () => {
    const bits = fc.constantFrom(
      '$',
      '$$',
      '\\(',
      '\\)',
      '\\[',
      '\\]',
      'a',
      ' ',
      '\n',
      '\n\n',
      '`',
      '*',
      '_',
      '5',
    );
    fc.assert(
      fc.property(fc.array(bits, { maxLength: 60 }), (parts) => {
        const text = parts.join('');
        expect(
          blocksOf(text, MATH_SYNTAX)
            .map(({ raw }) => raw)
            .join(''),
        ).toBe(text);
        expect(withoutMath(text)).toHaveLength(text.length);
      }),
    );
  });

  it.each(['\\(', '\\[', '$', '$$', '$a ', ' $a$b', '_$a$ ', '\\(a\\)', '\\[\\(', '\n$$a', 'a$x$ '])(
    'of a text of %j again and again are read in a time that a page has',
    (part) => {
      const text = part.repeat(Math.ceil(200_000 / part.length));
      const before = process.cpuUsage();
      formulas(text);
      const { user } = process.cpuUsage(before);
      // A bound for what grows with the square of the length, which would take minutes.
      expect(user / 1e6).toBeLessThan(60);
    },
  );
});
