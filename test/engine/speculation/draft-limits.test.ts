import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { longestDraftInWindow } from '../../../engine/speculation/draft-lengths.js';
import { AttentionWindow } from '../../../kvcache/attention-window.js';

describe('longestDraftInWindow', () => {
  it('is unlimited without a window', () => {
    expect(longestDraftInWindow(null, 1000, 8)).toBe(Number.POSITIVE_INFINITY);
  });

  it('is the worked example of its comment', () => {
    const window = new AttentionWindow({ maxAttentionWindow: 10, tokensPerBlock: 4 });
    expect(longestDraftInWindow(window, 21, 4)).toBe(2);
    expect(longestDraftInWindow(window, 8, 4)).toBe(4);
  });

  it('never lets a rejected draft write over what is attended to, and one token more would', () => {
    const sizes = fc.record({
      window: fc.integer({ min: 1, max: 40 }),
      sinks: fc.integer({ min: 0, max: 39 }),
      tokensPerBlock: fc.constantFrom(1, 2, 4, 8),
      length: fc.integer({ min: 1, max: 120 }),
    });
    fc.assert(
      fc.property(sizes, ({ window: size, sinks, tokensPerBlock, length }) => {
        fc.pre(sinks < size);
        const window = new AttentionWindow({
          maxAttentionWindow: size,
          sinkTokenLength: sinks,
          tokensPerBlock,
        });
        const slotOf = (position: number) =>
          window.entryOf(Math.floor(position / tokensPerBlock)) * tokensPerBlock +
          (position % tokensPerBlock);
        // The newest token of the step attends to these; later ones see less of them.
        const newest = length - 1;
        const seen = new Set<number>();
        for (let t = 0; t <= newest; t++) if (t < sinks || t > newest - (size - sinks)) seen.add(slotOf(t));
        const harms = (draft: number) => {
          for (let k = 1; k <= draft; k++) if (seen.has(slotOf(newest + k))) return true;
          return false;
        };
        const longest = longestDraftInWindow(window, length, tokensPerBlock);
        expect(harms(Math.max(0, longest))).toBe(false);
        // The bubble after the sinks is never seen and never written over: a shorter limit would do it no
        // harm.
        if (sinks % tokensPerBlock === 0 || length > window.maxBlocks * tokensPerBlock) {
          const slack = length >= size ? longest + 1 : Number.POSITIVE_INFINITY;
          if (slack <= window.ringBlocks * tokensPerBlock) expect(harms(slack)).toBe(true);
        }
      }),
    );
  });
});
