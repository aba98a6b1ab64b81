import fc from 'fast-check';
import { expect, it } from 'vitest';
import { IndexedHeap } from '../../kvcache/indexed-heap.js';

it('always has the first of what is in it at its top, whatever was put in and taken out', () => {
  const operation = fc.record({
    block: fc.integer({ min: 0, max: 15 }),
    key: fc.integer({ min: 0, max: 9 }),
  });
  fc.assert(
    fc.property(fc.array(operation, { minLength: 20, maxLength: 120 }), (operations) => {
      const keys = new Array<number>(16).fill(0);
      const heap = new IndexedHeap(16, (a, b) => keys[a]! < keys[b]!);
      const inside = new Set<number>();
      for (const { block, key } of operations) {
        if (inside.delete(block)) {
          heap.remove(block);
        } else {
          keys[block] = key;
          heap.push(block);
          inside.add(block);
        }
        expect(heap.size).toBe(inside.size);
        expect(heap.has(block)).toBe(inside.has(block));
        if (inside.size === 0) expect(heap.peek()).toBe(-1);
        else expect(keys[heap.peek()]).toBe(Math.min(...[...inside].map((one) => keys[one]!)));
      }
      while (heap.size > 0) {
        const first = heap.peek();
        expect(keys[first]).toBe(Math.min(...[...inside].map((one) => keys[one]!)));
        heap.remove(first);
        inside.delete(first);
      }
    }),
  );
});

it('takes a block once, and lets one go that it does not have', () => {
  const heap = new IndexedHeap(4, (a, b) => a < b);
  heap.push(2);
  expect(() => heap.push(2)).toThrow('Block 2 is in the heap already.');
  heap.remove(3);
  expect(heap.size).toBe(1);
});
