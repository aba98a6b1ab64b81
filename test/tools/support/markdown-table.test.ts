import { describe, expect, it } from 'vitest';
import { markdownTable, tableRow } from '../../../tools/support/markdown-table.js';

describe('markdownTable', () => {
  it('aligns the first column to the left and numbers to the right', () => {
    expect(
      markdownTable(
        ['side', 'ms'],
        [
          ['one', 1.5],
          ['two', '2'],
        ],
      ),
    ).toBe('| side | ms |\n| --- | ---: |\n| one | 1.5 |\n| two | 2 |');
  });

  it('aligns as many columns to the left as it is told', () => {
    const rule = (left: number) => markdownTable(['a', 'b', 'c'], [], left).split('\n')[1];
    expect(rule(0)).toBe('| ---: | ---: | ---: |');
    expect(rule(2)).toBe('| --- | --- | ---: |');
    expect(rule(3)).toBe('| --- | --- | --- |');
  });

  it('has one line for a row', () => {
    expect(tableRow(['a', 2])).toBe('| a | 2 |');
    expect(tableRow([])).toBe('|  |');
  });
});
