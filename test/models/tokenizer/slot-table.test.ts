import { describe, expect, it } from 'vitest';
import { NONE, slotTable } from '../../../models/tokenizer/slot-table.js';

const never = () => false;

describe('slotTable', () => {
  it('has each item once, in the slot of its hash or after it', () => {
    const { slots, seed } = slotTable(100, (item) => item % 10, never);
    expect(seed).toBe(0);
    expect(slots.length).toBe(256);
    expect(slots.filter((item) => item !== NONE).toSorted()).toEqual(
      Int32Array.from({ length: 100 }, (_, i) => i),
    );
    for (let item = 0; item < 100; item++) {
      const at = slots.indexOf(item);
      expect(slots.subarray(item % 10, at).includes(NONE)).toBe(false);
    }
  });

  it('keeps the last of equal items', () => {
    const { slots } = slotTable(
      6,
      (item) => item % 2,
      (one, other) => one % 2 === other % 2,
    );
    expect(slots.filter((item) => item !== NONE).toSorted()).toEqual(Int32Array.of(4, 5));
  });

  it('takes another seed where too many items have one hash, and refuses what has one with every seed', () => {
    const collides = (item: number, seed: number) => (seed < 2 ? 7 : item);
    expect(slotTable(1000, collides, never).seed).toBe(2);
    expect(() => slotTable(1000, () => 7, never)).toThrow(
      'tokenizer.json: too many texts or merges of the model have the same hash.',
    );
  });
});
