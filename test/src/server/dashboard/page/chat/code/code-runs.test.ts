import { common, createLowlight } from 'lowlight';
import { describe, expect, it } from 'vitest';
import { MAX_RUNS, runsOf } from '../../../../../../../src/server/dashboard/page/chat/code/code-runs.js';

const { highlight } = createLowlight(common);

describe('the pieces of coloured code', () => {
  it('have its length together, and the classes of the innermost colour', () => {
    const code = ['const a = `x$', '{f(1)}`; // done'].join('');
    const runs = runsOf(highlight('js', code))!;
    let at = 0;
    const pieces = runs.map(([length, classes]) => {
      const piece = [code.slice(at, at + length), classes];
      at += length;
      return piece;
    });
    expect(at).toBe(code.length);
    expect(pieces).toContainEqual(['const', 'hljs-keyword']);
    expect(pieces).toContainEqual(['1', 'hljs-number']);
    expect(pieces).toContainEqual(['// done', 'hljs-comment']);
    expect(pieces).toContainEqual([' a = ', '']);
  });

  it('are none where there would be too many', () => {
    expect(runsOf(highlight('js', '1;'.repeat(MAX_RUNS / 4)))).toHaveLength(MAX_RUNS / 2);
    expect(runsOf(highlight('js', '1;'.repeat(MAX_RUNS)))).toBeNull();
  });
});
