import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { simulate } from '../../../engine/simulation/simulate.js';
import { LoopHarness, makeRequest } from '../../support/loop-harness.js';

const histories = fc.record({
  policy: fc.constantFrom('MAX_UTILIZATION' as const, 'GUARANTEED_NO_EVICT' as const),
  chunkPolicy: fc.constantFrom(undefined, 'FIRST_COME_FIRST_SERVED' as const, 'EQUAL_PROGRESS' as const),
  requests: fc.array(
    fc.record({
      arrivalIteration: fc.integer({ min: 0, max: 20 }),
      promptLength: fc.integer({ min: 1, max: 24 }),
      maxNewTokens: fc.integer({ min: 1, max: 20 }),
      priority: fc.constantFrom(0.2, 0.5),
    }),
    { minLength: 2, maxLength: 8 },
  ),
});

/** The loop with an executor that computes, on the same pool, fed by the same arrivals. */
describe('the simulation and the generation loop', () => {
  it('agree on what runs, pauses and holds blocks in every iteration', () => {
    let pauses = 0;
    const property = fc.property(histories, ({ policy, chunkPolicy, requests }) => {
      const pool = { numBlocks: 8, tokensPerBlock: 8, maxNumTokens: 48 };
      const result = simulate({
        ...pool,
        policy,
        maxNumRequests: 8,
        ...(chunkPolicy ? { chunk: { unit: 8, policy: chunkPolicy } } : {}),
        requests: requests.map((request, id) => ({ id, ...request })),
      });
      const chunking = chunkPolicy ? { chunkingPolicy: chunkPolicy } : {};
      const harness = new LoopHarness({ ...pool, schedulerPolicy: policy, ...chunking });
      for (const { iteration, active, scheduled, paused, blocks } of result.iterations) {
        for (const [
          index,
          { arrivalIteration, promptLength, maxNewTokens, priority },
        ] of requests.entries()) {
          if (arrivalIteration !== iteration) continue;
          const prompt = Array.from({ length: promptLength }, (_, position) => (7 * index + position) % 50);
          harness.waiting.push(makeRequest(BigInt(index), prompt, maxNewTokens, {}, priority));
        }
        harness.stats.length = 0;
        harness.loop.iterate();
        const contexts = scheduled.filter(({ phase }) => phase === 'context');
        const stats = harness.stats[0];
        expect(stats === undefined).toBe(active.length === 0);
        if (stats === undefined) continue;
        expect(stats).toMatchObject({
          activeRequests: active.length,
          contextRequests: contexts.length,
          generationRequests: scheduled.length - contexts.length,
          contextTokens: contexts.reduce((sum, step) => sum + step.contextAfter - step.contextBefore, 0),
          pausedRequests: paused.length,
          freeBlocks: blocks.free,
          usedBlocks: blocks.used,
        });
        pauses += paused.length;
      }
      expect(harness.loop.activeRequests).toBe(0);
      expect(harness.errors).toEqual([]);
    });
    fc.assert(property, { numRuns: 150 });
    expect(pauses, 'the pool is small enough').toBeGreaterThan(20);
  });
});
