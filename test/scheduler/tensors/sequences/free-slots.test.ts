import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FreeSlots } from '../../../../scheduler/tensors/sequences/free-slots.js';

describe('free slots', () => {
  it('are taken from the lowest on, whichever are given back', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.nat(20), { maxLength: 60 }),
        (count, steps) => {
          const slots = new FreeSlots(count);
          const free = new Set(Array.from({ length: count }, (_, i) => i));
          const taken: number[] = [];
          for (const one of steps) {
            const lowest = Math.min(...free);
            expect(slots.lowest).toBe(lowest);
            if (one % 3 > 0 && free.size > 0) {
              expect(slots.take()).toBe(lowest);
              free.delete(lowest);
              taken.push(lowest);
            } else if (taken.length > 0) {
              const [back] = taken.splice(one % taken.length, 1);
              slots.give(back!);
              free.add(back!);
            }
          }
          slots.reset();
          expect(slots.lowest).toBe(0);
        },
      ),
    );
  });
});
