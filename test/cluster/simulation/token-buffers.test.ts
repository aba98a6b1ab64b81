import { expect, it } from 'vitest';
import { sharedPrefixTrace } from '../../../cluster/simulation/shared-prefixes.js';
import { TokenBuffers } from '../../../cluster/simulation/token-buffers.js';
import { Random } from '../../../tools/support/random.js';

it('an array of tokens is used again for one of its length, by one at a time', () => {
  const buffers = new TokenBuffers();
  const first = buffers.take(5);
  const second = buffers.take(5);
  expect(second).not.toBe(first);
  expect([first.length, second.length]).toEqual([5, 5]);
  buffers.give(first);
  expect(buffers.take(4)).toHaveLength(4);
  expect(buffers.take(5)).toBe(first);
  expect(buffers.take(5)).not.toBe(first);
});

it('prompts in shared arrays are those in arrays of their own, read one by one', () => {
  const trace = (sharesArrays: boolean) => {
    const random = new Random(3);
    return sharedPrefixTrace({
      ...{ requests: 60, rate: 5, prefixes: 4, prefixTokens: 20, ownTokens: 6, maxNewTokens: 3, turns: 3 },
      ...{ random: () => random.uniform(), sharesArrays },
    });
  };
  const own = [...trace(false)];
  const arrays = new Set<Int32Array>();
  let index = 0;
  for (const arrival of trace(true)) {
    expect(arrival).toEqual(own[index]);
    arrays.add(arrival.tokens);
    index += 1;
  }
  expect(index).toBe(own.length);
  // A length for each turn.
  expect(arrays.size).toBe(3);
  expect(new Set(own.map(({ tokens }) => tokens)).size).toBe(own.length);
});
