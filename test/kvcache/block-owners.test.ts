import { expect, it } from 'vitest';
import { BLOCK_CACHED, BLOCK_FREE, BLOCK_SHARED, runsOf } from '../../kvcache/block-owners.js';

it.each([
  { entries: [], runs: [] },
  { entries: [5], runs: [1, 5] },
  { entries: [5, 5, -1, -1, -1, 3], runs: [2, 5, 3, -1, 1, 3] },
  { entries: [0, 1, 0], runs: [1, 0, 1, 1, 1, 0] },
])('runs of equal entries: $entries', ({ entries, runs }) => {
  expect([...runsOf(Int32Array.from(entries))]).toEqual(runs);
});

it('entries of blocks that no request holds alone are no rows, and the same in every version, since pages read them', () => {
  expect([BLOCK_FREE, BLOCK_CACHED, BLOCK_SHARED]).toEqual([-1, -2, -3]);
});
