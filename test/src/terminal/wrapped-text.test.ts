import { describe, expect, it } from 'vitest';
import { wrapped, wrappedItem, wrappedText } from '../../../src/terminal/wrapped-text.js';

describe('wrapped', () => {
  it('fills lines with whole words, and keeps all of them in their order', () => {
    const text = 'tokens that the KV cache  holds,\nover all requests';
    expect(wrapped(text, 20)).toEqual(['tokens that the KV', 'cache holds, over', 'all requests']);
    for (let width = 1; width < 60; width++) {
      const lines = wrapped(text, width);
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(width);
      expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(/\s/g, ''));
    }
    expect(wrapped('', 10)).toEqual(['']);
  });

  it('parts a word that is longer than a line, behind a sign where there is one', () => {
    expect(wrapped('--executor <auto|native|tensorflow|wasm>', 24)).toEqual([
      '--executor',
      '<auto|native|tensorflow|',
      'wasm>',
    ]);
    expect(wrapped('abcdefgh', 3)).toEqual(['abc', 'def', 'gh']);
  });
});

describe('wrappedItem', () => {
  it('has what a term means beside it where there is room', () => {
    expect(wrappedItem('--port <N>', 'port to listen on; 0 takes a free one', 12, 60)).toBe(
      '  --port <N>    port to listen on; 0 takes a free one',
    );
    const [first, second] = wrappedItem('--port <N>', 'a '.repeat(40), 12, 60).split('\n');
    expect(first).toMatch(/^ {2}--port <N> {4}a a/);
    expect(second).toMatch(/^ {16}a a/);
  });

  it('has it below where the term is too long, or the line too short', () => {
    const term = '--max-queued-requests-per-key <REQUESTS>';
    expect(wrappedItem(term, 'of these, requests of one key', term.length, 120)).toBe(
      `  ${term}\n${' '.repeat(38)}of these, requests of one key`,
    );
    expect(wrappedItem('--port <N>', 'port to listen on', 12, 40)).toBe(
      '  --port <N>\n      port to listen on',
    );
  });
});

describe('wrappedText', () => {
  const text = `
Each option: flag, else environment
variable, else default.

Variables:
  SKEIN_ISA     lowers the instruction set
                of the executor
  SKEIN_DEBUG   1: with the stack
`;

  it('wraps paragraphs and lists alike', () => {
    expect(wrappedText(text, 100).split('\n')).toEqual([
      '',
      'Each option: flag, else environment variable, else default.',
      '',
      'Variables:',
      '  SKEIN_ISA    lowers the instruction set of the executor',
      '  SKEIN_DEBUG  1: with the stack',
      '',
    ]);
    expect(wrappedText(text, 30).split('\n')).toEqual([
      '',
      'Each option: flag, else',
      'environment variable, else',
      'default.',
      '',
      'Variables:',
      '  SKEIN_ISA',
      '      lowers the instruction',
      '      set of the executor',
      '  SKEIN_DEBUG',
      '      1: with the stack',
      '',
    ]);
  });
});
