import { expect, it } from 'vitest';
import { LeastTree, NO_VALUE } from '../../../models/tokenizer/least-tree.js';
import { Random } from '../../../tools/soak/random.js';

/** Oracle: the first place of the least value, found by looking at every place. */
function firstOfLeast(values: readonly number[]): number {
  const least = Math.min(...values);
  return least === NO_VALUE ? -1 : values.indexOf(least);
}

it.each([1, 2, 15, 16, 17, 255, 256, 257, 4097])('finds the first of the least among %i places', (length) => {
  const random = new Random(length);
  const tree = new LeastTree(length);
  expect(tree.first()).toBe(-1);
  const values = Array.from({ length }, () => (random.chance(0.5) ? NO_VALUE : random.integer(0, 20)));
  for (const [place, value] of values.entries()) tree.setUnbuilt(place, value);
  tree.build();
  expect(tree.first()).toBe(firstOfLeast(values));
  for (let i = 0; i < 500; i++) {
    const place = random.integer(0, length - 1);
    values[place] = random.chance(0.3) ? NO_VALUE : random.integer(0, 20);
    tree.set(place, values[place]);
    expect(tree.first()).toBe(firstOfLeast(values));
  }
  for (let place = tree.first(); place !== -1; place = tree.first()) {
    expect(place).toBe(firstOfLeast(values));
    values[place] = NO_VALUE;
    tree.set(place, NO_VALUE);
  }
  expect(values.every((value) => value === NO_VALUE)).toBe(true);
});
