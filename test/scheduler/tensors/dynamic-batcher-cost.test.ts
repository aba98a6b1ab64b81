import { describe, expect, it } from 'vitest';
import {
  type BatcherConfig,
  DynamicBatcher,
  type QueuedRequest,
} from '../../../scheduler/tensors/dynamic-batcher.js';
import { PATIENT } from '../../../scheduler/tensors/queue-policy.js';
import { batching, oneLevel } from '../../support/queued-requests.js';

const CROWD = 100_000;

/** Counts how often the batcher looks at a request: what it does with one takes a fixed number of looks. */
class Counted implements QueuedRequest {
  static looks = 0;
  readonly timeoutUs: number;
  readonly priority: number;
  readonly #rows: number;

  constructor(rows = 1, { priority = 0, timeoutUs = 0 } = {}) {
    this.#rows = rows;
    this.priority = priority;
    this.timeoutUs = timeoutUs;
  }

  get rows(): number {
    Counted.looks++;
    return this.#rows;
  }

  get fit(): string {
    Counted.looks++;
    return '';
  }
}

function looksOf(work: () => void): number {
  Counted.looks = 0;
  work();
  return Counted.looks;
}

function crowd(config: Partial<BatcherConfig>, make: (index: number) => Counted = () => new Counted()) {
  const batcher = new DynamicBatcher<Counted>(batching({ maxBatchSize: 64, ...config }));
  const requests = Array.from({ length: CROWD }, (_, index) => make(index));
  for (const [index, request] of requests.entries()) batcher.add(request, index);
  return { batcher, requests };
}

describe('looks at requests, with 100,000 that wait', () => {
  it('are a few for each that comes, runs or leaves', () => {
    const { batcher, requests } = crowd({ maxDelayUs: 1000 });
    expect(looksOf(() => batcher.add(new Counted(), CROWD))).toBeLessThan(10);
    expect(looksOf(() => batcher.remove(requests[CROWD / 2]!))).toBeLessThan(10);
    expect(looksOf(() => batcher.next(CROWD))).toBeLessThan(10 * 64);
    let batches = 0;
    const all = looksOf(() => {
      while (batcher.next(CROWD * 2).batch !== null) batches++;
    });
    expect(batches).toBe(Math.ceil(CROWD / 64) - 1);
    expect(all).toBeLessThan(10 * CROWD);
  });

  it('are a few for each where a batch waits and `next` is called whenever one comes', () => {
    const batcher = new DynamicBatcher<Counted>(
      batching({ maxBatchSize: 10_000, preferred: [4, 10_000], maxDelayUs: 1e9 }),
    );
    const looks = looksOf(() => {
      for (let index = 0; index < CROWD; index++) {
        batcher.add(new Counted(3), index);
        batcher.next(index);
      }
    });
    expect(looks).toBeLessThan(20 * CROWD);
  });

  it('are a few for each where levels take turns', () => {
    const levels = { ...oneLevel({}), count: 2, default: 2 };
    const batcher = new DynamicBatcher<Counted>(batching({ maxBatchSize: 10_000, maxDelayUs: 1e9, levels }));
    const looks = looksOf(() => {
      for (let index = 0; index < CROWD; index++) {
        batcher.add(new Counted(1, { priority: 1 + (index % 2) }), index);
        batcher.next(index);
      }
    });
    expect(looks).toBeLessThan(20 * CROWD);
  });

  it('are a few for each where all leave, the oldest first', () => {
    const { batcher, requests } = crowd({ maxBatchSize: 1e6, maxDelayUs: 1e9 });
    const looks = looksOf(() => {
      for (const request of requests) {
        batcher.remove(request);
        batcher.next(CROWD);
      }
    });
    expect(batcher.size).toBe(0);
    expect(looks).toBeLessThan(20 * CROWD);
  });

  it('are a few for each where all expire, whatever their order', () => {
    for (const timeoutAction of ['REJECT', 'DELAY'] as const) {
      const levels = oneLevel({ ...PATIENT, timeoutAction, allowTimeoutOverride: true });
      const { batcher } = crowd({ maxDelayUs: Infinity, maxBatchSize: 1e6, levels }, (index) => {
        return new Counted(1, { timeoutUs: CROWD + ((index * 7919) % CROWD) });
      });
      const looks = looksOf(() => {
        for (let now = CROWD; now < 4 * CROWD; now += 10) batcher.next(now);
      });
      expect(batcher.size).toBe(timeoutAction === 'REJECT' ? 0 : CROWD);
      expect(looks).toBeLessThan(20 * CROWD);
    }
  });

  it('are no more than a batch has rows, where small sizes are preferred', () => {
    const { batcher } = crowd({ maxBatchSize: 1e6, preferred: [8], maxDelayUs: 1e9 });
    expect(looksOf(() => batcher.next(CROWD))).toBeLessThan(100);
  });
});
