import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_PASSED, RoomQueue } from '../../host/room-queue.js';

describe('requests that find no room for their adapters', () => {
  it('are tried again the oldest first, and keep their places where they are refused again', () => {
    const queue = new RoomQueue<string>();
    queue.refuse('b', 2n);
    queue.refuse('c', 3n);
    queue.refuse('a', 1n);
    expect([...queue.parked()]).toEqual(['a', 'b', 'c']);
    expect(queue.takeNext()).toBe('a');
    expect([queue.has('a'), queue.size]).toEqual([false, 2]);
    queue.refuse('a', 1n);
    expect([queue.takeNext(), queue.takeNext(), queue.takeNext(), queue.takeNext()]).toEqual([
      'a',
      'b',
      'c',
      null,
    ]);
  });

  it('are passed by others so many times, which wait behind them then', () => {
    const queue = new RoomQueue<string>();
    expect(queue.admits('early', 1n)).toBe(true);
    queue.refuse('a', 2n);
    expect(queue.takeNext()).toBe('a');
    for (let i = 0; i < MAX_PASSED; i++) expect(queue.admits(`x${i}`, BigInt(10 + i))).toBe(true);
    expect(queue.admits('late', 1000n)).toBe(false);
    expect(queue.admits('a', 2n)).toBe(true);
    expect(queue.admits('older', 1n)).toBe(true);
    expect([queue.has('late'), queue.size]).toEqual([true, 1]);
    expect([queue.leave('a'), queue.leave('a')]).toEqual([true, false]);
    expect(queue.takeNext()).toBe('late');
    expect(queue.admits('next', 1001n)).toBe(true);
  });

  it('are counted as those that are parked, in the order of their arrival, after any history', () => {
    const step = fc.record({ item: fc.nat(9), act: fc.constantFrom('refuse', 'admits', 'take', 'leave') });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const queue = new RoomQueue<number>();
        for (const { item, act } of steps) {
          if (act === 'refuse') queue.refuse(item, BigInt(item));
          else if (act === 'admits') {
            if (!queue.has(item) && !queue.admits(item, BigInt(item))) expect(queue.has(item)).toBe(true);
          } else if (act === 'take') {
            const [oldest = null] = queue.parked();
            expect(queue.takeNext()).toBe(oldest);
          } else {
            queue.leave(item);
            expect(queue.has(item)).toBe(false);
          }
          const parked = [...queue.parked()];
          expect(parked).toEqual([...parked].sort((a, b) => a - b));
          expect(queue.size).toBe(parked.length);
        }
      }),
    );
  });
});
