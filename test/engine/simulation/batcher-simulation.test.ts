import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BatcherArrival, simulateBatcher } from '../../../engine/simulation/batcher-simulation.js';
import { Random } from '../../../loadgen/random.js';
import { softBatcher } from '../../../scheduler/tensors/batcher-presets.js';
import { batching, oneLevel } from '../../support/queued-requests.js';

const arrival = (atUs: number, rows = 1, more: Partial<BatcherArrival> = {}): BatcherArrival => ({
  ...{ atUs, rows, fit: '', priority: 0, timeoutUs: 0 },
  ...more,
});

describe('a simulated batcher', () => {
  it('gives a free instance what waits, from the time at which it is free', () => {
    const result = simulateBatcher({
      batcher: batching(),
      instances: 1,
      computeUs: { batch: 100, row: 10 },
      arrivals: [0, 10, 20, 30].map((atUs) => arrival(atUs)),
    });
    // The first alone: 0 to 110. The others together: 110 to 240.
    expect(result.batchSizes).toEqual([
      { rows: 1, batches: 1 },
      { rows: 3, batches: 1 },
    ]);
    expect(result.queueUs).toEqual({ mean: (100 + 90 + 80) / 4, p50: 80, p90: 100, p99: 100, max: 100 });
    expect(result.latencyUs.max).toBe(230);
    expect([result.seconds, result.busyShare, result.meanRows]).toEqual([240e-6, 1, 2]);
    expect([result.requests, result.answered, result.refused, result.expired]).toEqual([4, 4, 0, 0]);
  });

  it('lets instances compute side by side', () => {
    const result = simulateBatcher({
      batcher: softBatcher({ batchSize: 2, timeoutUs: 50 }),
      instances: 2,
      computeUs: { batch: 1000, row: 0 },
      arrivals: [0, 0, 0, 0, 0].map((atUs) => arrival(atUs)),
    });
    expect(result.queueUs).toMatchObject({ p50: 0, max: 1000 });
    expect([result.batches, result.seconds]).toEqual([3, 2e-3]);
    expect(result.busyShare).toBe(0.75);
  });

  it('counts who is refused and who expires, and waits for the delay at the end', () => {
    const levels = oneLevel({ maxQueueSize: 2, timeoutUs: 300 });
    const result = simulateBatcher({
      batcher: batching({ preferred: [8], maxDelayUs: 200, levels }),
      instances: 1,
      computeUs: { batch: 1000, row: 0 },
      arrivals: [arrival(0, 8), ...[1, 2, 3].map((atUs) => arrival(atUs)), arrival(2000)],
    });
    expect([result.answered, result.refused, result.expired]).toEqual([2, 1, 2]);
    expect(result.queueUs.max).toBe(200);
    expect(result.seconds).toBe(3200e-6);
  });

  it('ends where a part of a batch waits for ever', () => {
    const result = simulateBatcher({
      batcher: softBatcher({ batchSize: 4, timeoutUs: Number.POSITIVE_INFINITY }),
      instances: 1,
      computeUs: { batch: 10, row: 1 },
      arrivals: [0, 1, 2].map((atUs) => arrival(atUs)),
    });
    expect([result.answered, result.batches, result.queueUs.max, result.busyShare]).toEqual([0, 0, 0, 0]);
  });

  it('waits as the theory of queues says where nothing is batched', () => {
    // Poisson arrivals, a fixed time, one server: the mean wait is load / (2 (1 - load)) of that time (Pollaczek, Khinchine).
    const random = new Random(7);
    const load = 0.7;
    let atUs = 0;
    const arrivals = Array.from({ length: 200_000 }, () => {
      atUs += (1000 / load) * random.exponential();
      return arrival(atUs);
    });
    const computeUs = { batch: 1000, row: 0 };
    const { queueUs, busyShare } = simulateBatcher({
      batcher: batching({ oneByOne: true }),
      instances: 1,
      computeUs,
      arrivals,
    });
    expect(Math.abs(queueUs.mean / ((1000 * load) / (2 * (1 - load))) - 1)).toBeLessThan(0.05);
    expect(busyShare).toBeCloseTo(load, 2);
  });

  it('accounts for every request', () => {
    const requests = fc.array(
      fc.record({ gapUs: fc.integer({ min: 0, max: 60 }), rows: fc.integer({ min: 1, max: 8 }) }),
      { minLength: 1, maxLength: 60 },
    );
    const model = fc.record({
      instances: fc.integer({ min: 1, max: 3 }),
      computeUs: fc.record({ batch: fc.integer({ min: 0, max: 200 }), row: fc.integer({ min: 0, max: 20 }) }),
      maxDelayUs: fc.constantFrom(0, 10, 100),
      maxQueueSize: fc.constantFrom(0, 3),
      timeoutUs: fc.constantFrom(0, 80),
    });
    fc.assert(
      fc.property(requests, model, (list, { instances, computeUs, maxDelayUs, maxQueueSize, timeoutUs }) => {
        let atUs = 0;
        const arrivals = list.map(({ gapUs, rows }) => {
          atUs += gapUs;
          return arrival(atUs, rows);
        });
        const levels = oneLevel({ maxQueueSize, timeoutUs });
        const batcher = batching({ maxDelayUs, levels });
        const result = simulateBatcher({ batcher, instances, computeUs, arrivals });
        expect(result.answered + result.refused + result.expired).toBe(list.length);
        const rows = result.batchSizes.reduce((sum, one) => sum + one.rows * one.batches, 0);
        expect(rows).toBeLessThanOrEqual(list.reduce((sum, one) => sum + one.rows, 0));
        expect(result.busyShare).toBeLessThanOrEqual(1 + 1e-9);
        if (timeoutUs > 0) expect(result.queueUs.max).toBeLessThan(timeoutUs);
      }),
    );
  });
});
