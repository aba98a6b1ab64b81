import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { forEachFollower } from '../../../../engine/executors/portable/sampling/ngram-followers.js';
import { countedReads } from '../../../support/counted-reads.js';
import { draws } from '../../../support/scale.js';

/** Oracle by the definition: each place of the history is compared with its end. */
function followers(history: readonly number[], count: number): number[] {
  const last = history.slice(history.length - count).join();
  if (history.length <= count || (count > 0 && history.slice(-count).includes(-1))) return [];
  const found: number[] = [];
  for (let i = 0; i + count < history.length; i++)
    if (history.slice(i, i + count).join() === last) found.push(history[i + count]!);
  return found.filter((token) => token >= 0);
}

it('finds what followed the last tokens', () => {
  const history = fc.array(fc.integer({ min: -1, max: 2 }), { maxLength: 24 });
  fc.assert(
    fc.property(history, fc.nat(10), (tokens, count) => {
      const found: number[] = [];
      forEachFollower(Int32Array.from(tokens), count, (token) => found.push(token));
      expect(found).toEqual(followers(tokens, count));
    }),
    { seed: 1, numRuns: draws(200) },
  );
});

it.each([
  ['one token over and over', () => 7],
  ['two tokens in turns', (i: number) => i % 2],
  ['one token, and now and then another', (i: number) => (i % 97 === 0 ? 1 : 0)],
])('reads a history of %s a few times, however long what is looked for', (_, tokenAt) => {
  const { numbers, reads } = countedReads(Int32Array.from({ length: 10_000 }, (_, i) => tokenAt(i)));
  let found = 0;
  forEachFollower(numbers, 5000, () => found++);
  expect(found).toBeGreaterThan(0);
  expect(reads()).toBeLessThan(8 * numbers.length);
});
