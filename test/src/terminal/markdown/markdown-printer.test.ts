import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MarkdownPrinter } from '../../../../src/terminal/markdown/markdown-printer.js';
import { draws } from '../../../support/scale.js';
import { TestScreen } from './screen.js';

/** The screen after a text has come in these pieces. */
function printed(pieces: readonly string[], screen = new TestScreen()): TestScreen {
  const printer = new MarkdownPrinter(screen);
  for (const piece of pieces) printer.write(piece, 'answer');
  printer.end();
  return screen;
}

const linesOf = (text: string, columns = 40) => printed([text], new TestScreen(columns, 200)).lines;

const BLOCKS = [
  '# Geese',
  'A **bold** word, some *more*, `code`, ~~gone~~ and [a link](https://geese.example/) in a line.',
  '- one\n- two words that are longer than a line of this narrow screen\n  1. deep\n  2. deeper\n- three',
  '```ts\nconst goose = 1;\n\nfly(goose);\n```',
  '> quoted **text** that has to be cut in two',
  '| bird | legs |\n|---|---:|\n| goose | 2 |\n| a very long name of a bird | 4 |',
  'Title\n===',
  '***',
  'two\nlines',
  '<b>html</b> &amp; more',
  '3 * 4 * 5 and snake_case_name',
];

describe('an answer in Markdown', () => {
  it('is shown with its marks gone, blocks apart, code at the margin', () => {
    expect(linesOf(BLOCKS.slice(0, 4).join('\n\n'))).toEqual([
      'Geese',
      '',
      'A bold word, some more, code, gone and',
      'a link (https://geese.example/) in a',
      'line.',
      '',
      '• one',
      '• two words that are longer than a line',
      '  of this narrow screen',
      '  1. deep',
      '  2. deeper',
      '• three',
      '',
      '```ts',
      'const goose = 1;',
      '',
      'fly(goose);',
      '```',
      '',
    ]);
    expect(linesOf(BLOCKS.slice(4).join('\n\n'))).toEqual([
      '│ quoted text that has to be cut in two',
      '',
      'bird                       │ legs',
      '───────────────────────────┼─────',
      'goose                      │    2',
      'a very long name of a bird │    4',
      '',
      'Title',
      '',
      '─'.repeat(39),
      '',
      'two',
      'lines',
      '',
      '<b>html</b> & more',
      '',
      '3 * 4 * 5 and snake_case_name',
      '',
    ]);
  });

  it('stands out by styles that end with their words', () => {
    expect(printed(['a **b *c*** `d`']).written).toBe(
      'a \x1b[1mb \x1b[22m\x1b[3m\x1b[1mc\x1b[23m\x1b[22m \x1b[36md\x1b[39m\n',
    );
  });

  it('cuts cells of a table that is wider than the screen', () => {
    const lines = linesOf('| a | b |\n|---|---|\n| one two three four | five six seven eight |', 24);
    expect(lines).toEqual([
      'a          │ b',
      '───────────┼───────────',
      'one two    │ five six',
      'three four │ seven',
      '           │ eight',
      '',
    ]);
  });

  it('counts the columns of wide characters', () => {
    expect(linesOf('日本語の文章です 日本', 17)).toEqual(['日本語の文章です', '日本', '']);
    expect(linesOf('x'.repeat(50), 21)).toEqual(['x'.repeat(20), 'x'.repeat(20), 'x'.repeat(10), '']);
  });

  it('comes piece by piece, and is in the end as if it had come at once', () => {
    const text = fc.array(fc.constantFrom(...BLOCKS), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 7 }), (blocks, length) => {
        const whole = blocks.join('\n\n');
        const pieces = whole.match(new RegExp(`[\\s\\S]{1,${length}}`, 'g'))!;
        expect(printed(pieces, new TestScreen(40, 200)).lines).toEqual(linesOf(whole));
      }),
      { numRuns: draws(60) },
    );
  });

  it('leaves what has left the screen, and never moves the cursor out of it', () => {
    const rows = Array.from({ length: 30 }, (_, at) => `| ${'x'.repeat(at)} | ${at} |`);
    const screen = printed(
      `| a | b |\n|---|---|\n${rows.join('\n')}\n`.match(/[\s\S]{1,9}/g)!,
      new TestScreen(60, 10),
    );
    expect(screen.lines.at(-2)).toBe(`${'x'.repeat(29)} │ 29`);
    expect(screen.lines.filter((line) => line.includes('│'))).toHaveLength(31);
  });

  it('writes the block once more where the terminal has got another width', () => {
    const screen = new TestScreen(40, 50);
    const printer = new MarkdownPrinter(screen);
    printer.write('one two three four', 'answer');
    screen.columns = 10;
    printer.write(' five', 'answer');
    printer.end();
    expect(screen.lines).toEqual(['one two three four', '', 'one two', 'three', 'four five', '']);
  });

  it('has nothing that a terminal would obey', () => {
    const { written } = printed(['a\x1b]0;owned\x07b\x1b[2J `\x1b[31m` \x9b31m']);
    expect(written).toBe('a]0;ownedb[2J \x1b[36m[31m\x1b[39m 31m\n');
  });

  it('shows reasoning dimmed before it', () => {
    const screen = new TestScreen();
    const printer = new MarkdownPrinter(screen);
    printer.write('Hm, **so**', 'reasoning');
    printer.write('\n\nYes **so**', 'answer');
    printer.end();
    expect(screen.written).toContain('\x1b[2mHm, **so**');
    expect(screen.lines).toEqual(['Hm, **so**', '', 'Yes so', '']);
  });

  it('shows all that has come, also where nothing more comes for a while', async () => {
    const screen = new TestScreen();
    const printer = new MarkdownPrinter(screen);
    for (const piece of 'one **two** three'.split('')) printer.write(piece, 'answer');
    await expect.poll(() => screen.lines).toEqual(['one two three']);
    printer.end();
    expect(screen.lines).toEqual(['one two three', '']);
  });

  it('begins with the next one as with the first', () => {
    const screen = new TestScreen();
    const printer = new MarkdownPrinter(screen);
    for (const text of ['**one**', 'two']) {
      printer.write(text, 'answer');
      printer.end();
    }
    expect(screen.lines).toEqual(['one', 'two', '']);
  });

  it.each([
    ['a paragraph', 'words and '.repeat(4000)],
    ['code', `\`\`\`js\n${'fly();\n'.repeat(4000)}\`\`\`\n\nend`],
    ['quotes', '>'.repeat(20_000)],
    ['brackets', '['.repeat(20_000)],
    ['stars', '*a '.repeat(8_000)],
  ])('of great length (%s) is shown, in bounded time', (_, text) => {
    const pieces = text.match(/[\s\S]{1,400}/g)!;
    const letters = (some: string) => some.replace(/[^a-z]/g, '');
    const { lines } = printed(pieces, new TestScreen(80, 30));
    expect(letters(lines.join('')).length).toBeGreaterThanOrEqual(letters(text).length);
  });

  it('goes on as code where a long block of code is cut', () => {
    const text = `\`\`\`js\n${'fly(*now*);\n'.repeat(3000)}\`\`\`\n\nthe *end*`;
    const { lines } = printed(text.match(/[\s\S]{1,300}/g)!, new TestScreen(80, 30));
    expect(lines.filter((line) => line === 'fly(now);')).toEqual([]);
    expect(lines.slice(-4)).toEqual(['```', '', 'the end', '']);
  });
});
