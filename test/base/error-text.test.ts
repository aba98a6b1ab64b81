import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cutText } from '../../base/error-text.js';

describe('a text that is cut', () => {
  it('says how much is missing, and stays as it is within the limit', () => {
    expect(cutText('abc', 3)).toBe('abc');
    expect(cutText('a'.repeat(1_000_003), 3)).toBe('aaa... (1,000,000 more characters left out)');
    expect(cutText('ab\u{1F986}', 3)).toBe('ab... (2 more characters left out)');
  });

  it('is bounded and well formed, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 40 }),
        fc.integer({ min: 1, max: 50 }),
        (text, most) => {
          const cut = cutText(text, most);
          expect(cut.length).toBeLessThanOrEqual(Math.max(text.length, most + 60));
          expect(() => encodeURIComponent(cut)).not.toThrow();
          expect(text.startsWith(cut.split('... (')[0]!) || cut === text).toBe(true);
        },
      ),
    );
  });
});
