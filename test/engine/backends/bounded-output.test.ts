import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LONGEST_LINE, MAX_BYTES, MAX_LINES, OutputLimit } from '../../../engine/backends/bounded-output.js';

const lines = (count: number) => 'a line\n'.repeat(count);

describe('the output of an instance', () => {
  it('is written as it is within the limit', () => {
    const limit = new OutputLimit();
    expect(limit.take('one\ntwo', 0)).toBe('one\ntwo');
    expect(limit.take('\n', 0)).toBe('\n');
    expect(limit.takeLeftOut()).toBe(0);
  });

  it('is cut after so many lines a second, and the rest is counted', () => {
    const limit = new OutputLimit();
    expect(limit.take(lines(MAX_LINES + 7), 100)).toBe(lines(MAX_LINES));
    for (let i = 0; i < 300_000; i++) limit.take('a line\n', 1099);
    expect([limit.hasLeftOut, limit.msLeft(1000)]).toEqual([true, 100]);
    expect(limit.takeLeftOut()).toBe(300_007);
    expect(limit.hasLeftOut).toBe(false);
    expect(limit.take(lines(3), 1100)).toBe(lines(3));
  });

  it('is cut after so many bytes, and in each line', () => {
    const limit = new OutputLimit();
    const written = limit.take('x'.repeat(50_000_000), 0);
    expect(written.startsWith('x'.repeat(LONGEST_LINE))).toBe(true);
    expect(written).toContain('more characters left out');
    expect(written.length).toBeLessThan(LONGEST_LINE + 100);
    limit.take(`${'y'.repeat(LONGEST_LINE - 1)}\n`.repeat(40), 0);
    expect(limit.takeLeftOut()).toBeGreaterThan(20);
  });

  it('is never more than its limits in a second, whatever is written', () => {
    const texts = fc.array(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.nat(2000).map(lines),
        fc.nat(300_000).map((length) => 'é'.repeat(length)),
      ),
    );
    fc.assert(
      fc.property(texts, (given) => {
        const limit = new OutputLimit();
        const written = given.map((text) => limit.take(text, 0)).join('');
        expect(Buffer.byteLength(written)).toBeLessThanOrEqual(MAX_BYTES);
        expect(written.split('\n').length).toBeLessThanOrEqual(MAX_LINES + 1);
        if (!limit.hasLeftOut && given.every(({ length }) => length <= LONGEST_LINE)) {
          expect(written).toBe(given.join(''));
        }
      }),
    );
  });
});
