import { describe, expect, it } from 'vitest';
import { countOf, describeFlags, listOf, readFlags } from '../../../tools/compare/flags.js';

const TABLE = {
  rounds: { argument: 'N', default: '5', help: 'alternations' },
  note: { argument: 'TEXT', help: 'put below' },
  resume: { help: 'go on' },
} as const;

describe('readFlags', () => {
  it('gives defaults, values and switches', () => {
    expect(readFlags(TABLE, [])).toEqual({ rounds: '5', note: '', resume: false });
    const flags = readFlags(TABLE, ['--rounds', '7', '--resume', '--note=quiet']);
    expect(flags).toEqual({ rounds: '7', note: 'quiet', resume: true });
  });

  it('refuses what is not in the table', () => {
    expect(() => readFlags(TABLE, ['--round', '7'])).toThrow('--round');
    expect(() => readFlags(TABLE, ['7'])).toThrow("'7'");
  });
});

describe('describeFlags', () => {
  it('has a line for each flag, its help in one column', () => {
    const lines = describeFlags(TABLE).split('\n');
    expect(lines).toEqual([
      '  --rounds N   alternations',
      '  --note TEXT  put below',
      '  --resume     go on',
    ]);
  });
});

describe('countOf', () => {
  it('takes whole numbers from the least on', () => {
    expect(countOf('rounds', '3')).toBe(3);
    expect(countOf('minutes', '0', 0)).toBe(0);
    for (const value of ['0', '-1', '2.5', 'two', ''])
      expect(() => countOf('rounds', value)).toThrow('--rounds: expected a whole number of at least 1');
  });
});

describe('listOf', () => {
  it('parts at commas; nothing and none are empty', () => {
    expect(listOf('F32, BF16')).toEqual(['F32', 'BF16']);
    expect([listOf(''), listOf('none')]).toEqual([[], []]);
  });
});
