import { expect, it } from 'vitest';
import { TokenIdList } from '../../../models/tokenizer/token-id-list.js';

it.each([0, 1, 64, 65, 1000])('keeps %i ids in their order, between others', (length) => {
  const ids = new TokenIdList();
  const expected = Array.from({ length }, (_, i) => (i * 7919) % 2 ** 24);
  for (const id of expected) ids.push(id);
  expect(ids.first).toBe(expected[0]);
  expect([...ids.between([1, 2], [3])]).toEqual([1, 2, ...expected, 3]);
  const alone = ids.between([], []);
  expect([...alone]).toEqual(expected);
  alone.fill(-1);
  expect([...ids.between([], [])]).toEqual(expected);
});
