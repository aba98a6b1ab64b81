import { describe, expect, it } from 'vitest';
import { firstWrongToken, klDivergence, klDivergenceOfTop, logSumExp } from '../../tools/support/goldens.js';

describe('how the goldens are compared', () => {
  it('accepts another token only where the reference was not sure', () => {
    const golden = { tokens: [5, 6, 7], gaps: [0.5, 0.0001, 0.5] };
    expect(firstWrongToken([5, 6, 7], golden)).toBeNull();
    expect(firstWrongToken([5, 9, 1], golden)).toBeNull();
    expect(firstWrongToken([5, 6, 1], golden)).toMatchObject({ step: 2, expected: 7, found: 1 });
    expect(firstWrongToken([5, 6], golden)).toMatchObject({ step: 2, found: undefined });
  });

  it('measures the divergence of two distributions', () => {
    const p = [Math.log(0.5), Math.log(0.25), Math.log(0.25)];
    const q = [Math.log(0.25) + 3, Math.log(0.5) + 3, Math.log(0.25) + 3];
    expect(klDivergence(p, p)).toBeCloseTo(0, 12);
    expect(klDivergence(p, q)).toBeCloseTo(0.5 * Math.log(2) - 0.25 * Math.log(2), 12);
    const top = { position: 0, tokens: [0], values: [p[0]!], logSumExp: logSumExp(p) };
    expect(klDivergenceOfTop(top, Float32Array.from(p))).toBeCloseTo(0, 6);
    expect(klDivergenceOfTop(top, Float32Array.from(q))).toBeCloseTo(
      0.5 * Math.log(2) + 0.5 * Math.log(0.5 / 0.75),
      6,
    );
  });
});
