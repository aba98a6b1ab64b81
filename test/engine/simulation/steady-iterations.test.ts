import fc from 'fast-check';
import { expect, it } from 'vitest';
import { Simulation, type SimulationOptions } from '../../../engine/simulation/simulation.js';

interface Case {
  options: SimulationOptions;
  arrivals: {
    at: number;
    promptLength: number;
    maxNewTokens: number;
    endsAfter: number;
    shares: boolean;
    priority: number;
  }[];
  /** Most iterations of each skip, one after the other. */
  mosts: number[];
}

const case_: fc.Arbitrary<Case> = fc.record({
  options: fc.record({
    policy: fc.constantFrom(
      'GUARANTEED_NO_EVICT' as const,
      'MAX_UTILIZATION' as const,
      'STATIC_BATCH' as const,
    ),
    numBlocks: fc.integer({ min: 12, max: 60 }),
    tokensPerBlock: fc.integer({ min: 1, max: 8 }),
    maxNumRequests: fc.integer({ min: 1, max: 6 }),
    microBatch: fc.record(
      {
        maxBatchSize: fc.integer({ min: 1, max: 6 }),
        maxNumTokens: fc.integer({ min: 40, max: 60 }),
        chunking: fc.record({
          unit: fc.integer({ min: 1, max: 8 }),
          policy: fc.constantFrom('EQUAL_PROGRESS' as const, 'SHORTEST_FIRST' as const),
        }),
      },
      { requiredKeys: ['maxBatchSize', 'maxNumTokens'] },
    ),
    enableBlockReuse: fc.boolean(),
    maxEvents: fc.constant(10_000),
    maxWaitIterations: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
  }),
  arrivals: fc.array(
    fc.record({
      at: fc.integer({ min: 0, max: 80 }),
      promptLength: fc.integer({ min: 1, max: 30 }),
      maxNewTokens: fc.integer({ min: 1, max: 30 }),
      endsAfter: fc.integer({ min: 1, max: 60 }),
      shares: fc.boolean(),
      priority: fc.constantFrom(0.2, 0.5, 0.8),
    }),
    { minLength: 1, maxLength: 8 },
  ),
  mosts: fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 6 }),
});

/** What can be seen of a simulation. */
function stateOf({ active, kvCache }: Simulation) {
  kvCache.checkIntegrity();
  const requests = active.map((one) => ({
    ...{ id: one.requestId, phase: one.phase, promptLength: one.promptLength, generated: one.generated },
    ...{ generatedLength: one.generatedLength, position: one.contextPosition, blocks: one.blocksHeld },
    ...{
      verified: one.numVerified,
      waited: one.waitedIterations,
      passedOver: one.passedOver,
      aged: one.hasAged,
    },
    length: one.blocksHeld > 0 ? kvCache.sequenceLength(one.requestId) : 0,
  }));
  return { requests, stats: kvCache.stats() };
}

it('that are skipped leave everything as if each had been run', () => {
  let numSkipped = 0;
  fc.assert(
    fc.property(case_, ({ options, arrivals, mosts }) => {
      const [stepped, skipping] = [new Simulation(options), new Simulation(options)];
      let turn = 0;
      const isOver = (iteration: number) =>
        stepped.active.length === 0 && arrivals.every(({ at }) => at < iteration);
      for (let iteration = 0; !isOver(iteration); ) {
        for (const [index, { at, shares, endsAfter, ...lengths }] of arrivals.entries()) {
          if (at !== iteration) continue;
          const { promptLength } = lengths;
          const tokens = shares
            ? { tokens: Int32Array.from({ length: promptLength }, (_, place) => place) }
            : {};
          const arrival = { requestId: BigInt(index), endsAfter, ...lengths, ...tokens };
          expect(skipping.arrive(arrival)).toBe(stepped.arrive(arrival));
        }
        // A run ends where a request comes.
        const nextAt = Math.min(...arrivals.map(({ at }) => at).filter((at) => at > iteration));
        turn += 1;
        const most = Math.min(mosts[turn % mosts.length]!, nextAt - iteration);
        const steady = skipping.steadyIterations();
        const skipped = skipping.skipWhileSteady(most);
        expect(skipped).toBe(Math.min(most, steady));
        numSkipped += skipped;
        if (skipped === 0) {
          if (stepped.active.length > 0) expect(skipping.iterate()).toEqual(stepped.iterate());
        } else {
          for (let step = 0; step < skipped; step += 1) {
            const { steps, paused, finished, newBlocks } = stepped.iterate();
            expect([steps.length, paused, finished, newBlocks]).toEqual([stepped.active.length, [], [], []]);
          }
        }
        iteration += Math.max(1, skipped);
        expect(stateOf(skipping)).toEqual(stateOf(stepped));
        expect(skipping.kvCache.drainEvents()).toEqual(stepped.kvCache.drainEvents());
      }
      expect(skipping.active).toHaveLength(0);
    }),
    { numRuns: 80 },
  );
  expect(numSkipped).toBeGreaterThan(500);
});

it('are none where a step could do more than add a token', () => {
  const options: SimulationOptions = {
    ...{ policy: 'GUARANTEED_NO_EVICT', numBlocks: 20, tokensPerBlock: 4, maxNumRequests: 4 },
    microBatch: { maxBatchSize: 4, maxNumTokens: 100 },
  };
  const after = (iterations: number, more: Partial<SimulationOptions>, arrival = {}) => {
    const simulation = new Simulation({ ...options, ...more });
    simulation.arrive({ requestId: 1n, promptLength: 5, maxNewTokens: 10, ...arrival });
    for (let index = 0; index < iterations; index += 1) simulation.iterate();
    return simulation.steadyIterations();
  };
  // | p p p p | p . . . : the prompt has brought token 1, and there is room for it and two more.
  expect([0, 1, 2, 3, 4].map((iterations) => after(iterations, {}))).toEqual([0, 3, 2, 1, 0]);
  expect(after(1, {}, { maxNewTokens: 3 })).toBe(1);
  expect(after(1, {}, { endsAfter: 2 })).toBe(0);
  expect(after(1, {}, { beamWidth: 2 })).toBe(0);
  expect(after(1, {}, { draftLength: 1 })).toBe(0);
  expect(after(1, { maxAttentionWindow: 16 })).toBe(0);
  expect(new Simulation(options).skipWhileSteady(5)).toBe(0);
});
