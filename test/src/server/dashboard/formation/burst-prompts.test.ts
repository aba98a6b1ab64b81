import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type BurstLength,
  burstOf,
} from '../../../../../src/server/dashboard/page/formation/burst-prompts.js';

const lengths = fc.constantFrom<BurstLength>('short', 'mixed', 'long');

it('a burst has as many prompts as were asked for, in two requests at most, and they fit the model', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 64 }),
      lengths,
      fc.integer({ min: 64, max: 200_000 }),
      fc.nat(9),
      (count, length, context, turn) => {
        const groups = burstOf(count, length, context, turn);
        expect(groups.length).toBeLessThanOrEqual(2);
        expect(groups.flatMap(({ prompts }) => prompts)).toHaveLength(count);
        for (const { prompts, maxTokens } of groups) {
          expect(maxTokens).toBeGreaterThanOrEqual(1);
          for (const prompt of prompts) {
            expect(prompt.length).toBeGreaterThan(0);
            // Three characters to a token, at the least that English has.
            expect(prompt.length / 3 + maxTokens).toBeLessThanOrEqual(context);
          }
        }
      },
    ),
  );
});

it('prompts differ, and the next burst has others', () => {
  const prompts = (turn: number) => burstOf(32, 'mixed', 4096, turn).flatMap((group) => group.prompts);
  expect(new Set(prompts(0)).size).toBe(32);
  expect(prompts(0).filter((prompt) => prompts(1).includes(prompt)).length).toBeLessThan(16);
});
