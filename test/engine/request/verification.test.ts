import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countAccepted } from '../../../engine/request/verification.js';

describe('countAccepted', () => {
  it('accepts what the model drew itself, up to the first other token', () => {
    const drawn = Int32Array.of(9, 9, 4, 5, 7, 6);
    expect(countAccepted(Int32Array.of(4, 5, 6), drawn, 2)).toBe(2);
    expect(countAccepted(Int32Array.of(4, 5), drawn, 2)).toBe(2);
    expect(countAccepted(Int32Array.of(5), drawn, 2)).toBe(0);
    expect(countAccepted(new Int32Array(0), drawn, 2)).toBe(0);
  });

  it('gives the tokens of drawing one by one, whatever the model and the drafts', () => {
    const scenario = fc.record({
      seed: fc.integer(),
      // Each draft: how many of its tokens are right, and how many wrong ones follow.
      drafts: fc.array(fc.tuple(fc.nat(4), fc.nat(3)), { minLength: 1, maxLength: 12 }),
    });
    fc.assert(
      fc.property(scenario, ({ seed, drafts }) => {
        const next = (tokens: readonly number[]) =>
          (Math.imul(seed ^ tokens.reduce((sum, token) => sum * 31 + token, 7), 0x9e3779b1) >>> 28) % 5;
        const draw = (count: number) => {
          const tokens: number[] = [];
          while (tokens.length < count) tokens.push(next(tokens));
          return tokens;
        };
        const tokens: number[] = [];
        for (const [right, wrong] of drafts) {
          const plain = draw(tokens.length + right);
          const draft = [...plain.slice(tokens.length), ...new Array<number>(wrong).fill(5)];
          const drawn = Int32Array.from(
            Array.from({ length: draft.length + 1 }, (_, k) => next([...tokens, ...draft.slice(0, k)])),
          );
          const accepted = countAccepted(Int32Array.from(draft), drawn, 0);
          expect(accepted).toBe(right);
          tokens.push(...drawn.subarray(0, accepted + 1));
        }
        expect(tokens).toEqual(draw(tokens.length));
      }),
    );
  });
});
