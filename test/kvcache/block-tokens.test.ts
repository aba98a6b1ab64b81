import fc from 'fast-check';
import { expect, it } from 'vitest';
import { BlockTokens } from '../../kvcache/block-tokens.js';

it('keeps the tokens of each block, whatever comes and goes beside it', () => {
  const step = fc.record({ isAdded: fc.boolean(), which: fc.nat(), first: fc.integer() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const tokens = new BlockTokens(3);
      const there = new Map<number, number[]>();
      let most = 0;
      for (const { isAdded, which, first } of steps) {
        const places = [...there.keys()];
        if (isAdded || places.length === 0) {
          const block = [first, which, 7];
          const place = tokens.add(Int32Array.of(0, ...block, 9), 1);
          expect(there.has(place)).toBe(false);
          there.set(place, [...Int32Array.from(block)]);
        } else {
          const place = places[which % places.length]!;
          tokens.remove(place);
          there.delete(place);
        }
        most = Math.max(most, there.size);
      }
      for (const [place, block] of there) {
        expect([...tokens.at(place)]).toEqual(block);
        expect(place).toBeLessThan(most);
      }
    }),
  );
});

it('compares a block with a part of a sequence', () => {
  const tokens = new BlockTokens(4);
  const place = tokens.add(Int32Array.of(1, 2, 3, 4), 0);
  const compared = (sequence: number[], length: number) => {
    const given = Int32Array.of(0, ...sequence);
    return [tokens.commonLength(place, given, 1, length), tokens.isLess(place, given, 1, length)];
  };
  expect(compared([1, 2, 3, 4], 4)).toEqual([4, false]);
  expect(compared([1, 2, 4, 4], 4)).toEqual([2, true]);
  expect(compared([1, 2, 2, 4], 4)).toEqual([2, false]);
  expect(compared([1, 2, 9], 2)).toEqual([2, false]);
  tokens.clear();
  expect(tokens.add(Int32Array.of(5, 6, 7, 8), 0)).toBe(0);
});
