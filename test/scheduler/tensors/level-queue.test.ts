import { describe, expect, it } from 'vitest';
import { type Levelled, LevelQueue } from '../../../scheduler/tensors/level-queue.js';
import { PATIENT } from '../../../scheduler/tensors/queue-policy.js';

const on = (priority: number): Levelled => ({ priority, timeoutUs: 0 });

describe('a request that comes to a queue of levels', () => {
  const newQueue = () =>
    new LevelQueue<Levelled>({
      count: 3,
      default: 2,
      defaultPolicy: { ...PATIENT, timeoutAction: 'DELAY', timeoutUs: 10 },
      policies: new Map(),
    });

  it('stands behind all others on the lowest level on which any wait', () => {
    const queue = newQueue();
    expect(queue.add(on(2), 0)).toBe(true);
    expect(queue.add(on(2), 0)).toBe(true);
    expect(queue.add(on(1), 0)).toBe(false);
    expect(queue.add(on(3), 0)).toBe(true);
    expect(queue.add(on(2), 0)).toBe(false);
  });

  it('stands in front of those of its level that have expired', () => {
    const queue = newQueue();
    queue.add(on(2), 0);
    queue.expireOne(10);
    expect(queue.add(on(1), 11)).toBe(false);
    expect(queue.add(on(2), 11)).toBe(false);
    expect(queue.add(on(3), 11)).toBe(true);
  });
});
