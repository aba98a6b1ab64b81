import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type QueueLimits, requireRoom, whyNoRoom } from '../../../host/queue/queue-room.js';

const FAIR: QueueLimits = { maxQueueSize: 256, fairQueueing: true };

/** The waiting requests of each key, and what becomes of more. */
class Queue {
  readonly counts = new Map<string, number>();
  readonly #limits: QueueLimits;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0);
  }

  of(key: string): number {
    return this.counts.get(key) ?? 0;
  }

  admits(key: string): boolean {
    return whyNoRoom(this.#limits, { size: this.size, ofKey: () => this.of(key) }) === null;
  }

  /** Adds one where there is room. */
  offer(key: string): boolean {
    if (!this.admits(key)) return false;
    this.counts.set(key, this.of(key) + 1);
    return true;
  }

  leave(key: string): void {
    this.counts.set(key, Math.max(0, this.of(key) - 1));
  }

  flood(key: string): number {
    while (this.offer(key));
    return this.of(key);
  }
}

describe('the room of a fair queue', () => {
  it('is half of it for one key alone, and half of what is left for each flood after it', () => {
    const queue = new Queue(FAIR);
    expect(['a', 'b', 'c'].map((key) => queue.flood(key))).toEqual([128, 64, 32]);
    expect(queue.offer('d')).toBe(true);
  });

  it('becomes equal for floods that go on while the engine takes from each in turn', () => {
    const queue = new Queue(FAIR);
    const keys = ['a', 'b', 'c'];
    for (let round = 0; round < 300; round++) {
      for (const key of keys) queue.flood(key);
      for (const key of keys) queue.leave(key);
    }
    for (const key of keys) expect(Math.abs(queue.of(key) - 64)).toBeLessThanOrEqual(2);
  });

  it('admits one request to an empty queue of any size', () => {
    for (const maxQueueSize of [1, 2, 3]) {
      const queue = new Queue({ maxQueueSize, fairQueueing: true });
      expect(queue.flood('a')).toBe(Math.ceil(maxQueueSize / 2));
    }
  });

  it('is never filled by one key, and never refused to a key that waits for nothing while a place is free', () => {
    const events = fc.array(fc.tuple(fc.boolean(), fc.constantFrom('a', 'b', 'c', 'd')), { maxLength: 400 });
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 40 }), events, (maxQueueSize, history) => {
        const queue = new Queue({ maxQueueSize, fairQueueing: true });
        for (const [comes, key] of history) {
          if (!comes) queue.leave(key);
          else if (!queue.offer(key)) expect(queue.of(key) > 0 || queue.size === maxQueueSize).toBe(true);
          expect(queue.size).toBeLessThanOrEqual(maxQueueSize);
          expect(queue.of(key)).toBeLessThanOrEqual(Math.ceil(maxQueueSize / 2));
        }
      }),
    );
  });
});

describe('a bound for each key that was asked for', () => {
  it('holds in the place of the shared one', () => {
    const queue = new Queue({ maxQueueSize: 6, maxQueueSizePerKey: 2, fairQueueing: true });
    expect(['a', 'b', 'c', 'd'].map((key) => queue.flood(key))).toEqual([2, 2, 2, 0]);
    const whole = new Queue({ maxQueueSize: 6, maxQueueSizePerKey: 6, fairQueueing: true });
    expect(whole.flood('a')).toBe(6);
  });
});

describe('a refusal', () => {
  const refusal = (limits: QueueLimits, size: number, count: number) => {
    const waiters = { size, ofKey: () => count };
    try {
      requireRoom(limits, waiters, (waiting) => 10 * waiting);
    } catch (error) {
      return error;
    }
    return null;
  };

  it('says whether the queue or the key is full, how many wait, and when to try again', () => {
    expect(refusal(FAIR, 256, 3)).toMatchObject({
      message: 'The queue is full: 256 requests are waiting; try again later.',
      retryAfterMs: 2560,
    });
    expect(refusal(FAIR, 190, 66)).toMatchObject({
      message: 'The queue is full: 66 requests of this API key are waiting; try again later.',
      retryAfterMs: 1900,
    });
    expect(refusal(FAIR, 190, 65)).toBeNull();
    expect(refusal({ maxQueueSize: 256, fairQueueing: false }, 255, 255)).toBeNull();
  });
});
