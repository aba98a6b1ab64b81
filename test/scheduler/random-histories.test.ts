import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hasStarted, type MicroBatchLimits } from '../../scheduler/types.js';
import { Replay, type ReplayArrival, type ReplayIteration, type ReplayOptions } from '../support/replay.js';

const TOKENS_PER_BLOCK = 8;

type Arrival = Omit<ReplayArrival, 'requestId'> & { gap: number };
interface History {
  options: ReplayOptions;
  arrivals: Arrival[];
}

const chunking: fc.Arbitrary<MicroBatchLimits['chunking']> = fc.option(
  fc.record(
    {
      policy: fc.constantFrom('FIRST_COME_FIRST_SERVED' as const, 'EQUAL_PROGRESS' as const),
      unit: fc.constant(TOKENS_PER_BLOCK),
      maxContextLength: fc.integer({ min: TOKENS_PER_BLOCK, max: 40 }),
    },
    { requiredKeys: ['policy', 'unit'] },
  ),
  { nil: undefined },
);

/** Small pools and small budgets, so that nearly every history runs out of something. */
function histories(policy: ReplayOptions['policy'], priorities: boolean): fc.Arbitrary<History> {
  const arrival = fc.record({
    gap: fc.integer({ min: 0, max: 4 }),
    promptLength: fc.integer({ min: 1, max: 45 }),
    maxNewTokens: fc.integer({ min: 1, max: 30 }),
    endsAfter: fc.integer({ min: 1, max: 40 }),
    priority: priorities ? fc.constantFrom(0.2, 0.5, 0.9) : fc.constant(0.5),
  });
  return fc
    .record({
      numBlocks: fc.integer({ min: 5, max: 14 }),
      maxInputLen: fc.integer({ min: 20, max: 40 }),
      maxNumRequests: fc.integer({ min: 1, max: 6 }),
      maxBatchSize: fc.integer({ min: 1, max: 6 }),
      maxNumTokens: fc.integer({ min: TOKENS_PER_BLOCK, max: 50 }),
      chunking,
      arrivals: fc.array(arrival, { minLength: 1, maxLength: 12 }),
    })
    .map(({ numBlocks, maxInputLen, maxNumRequests, maxBatchSize, maxNumTokens, chunking, arrivals }) => ({
      options: {
        policy,
        numBlocks,
        tokensPerBlock: TOKENS_PER_BLOCK,
        maxSeqLen: 40,
        maxInputLen,
        maxNumRequests,
        microBatch: { maxBatchSize, maxNumTokens, ...(chunking ? { chunking } : {}) },
      },
      arrivals,
    }));
}

/** Runs a history to its end; fails if an iteration in which something is active runs nothing, or if it never ends. */
function run({ options, arrivals }: History): ReplayIteration[] {
  const replay = new Replay(options);
  const iterations: ReplayIteration[] = [];
  const admitted = new Set<bigint>();
  let next = 0;
  let wait = arrivals[0]!.gap;
  const mostIterations = 4000;
  while (next < arrivals.length || replay.numActive > 0) {
    for (; next < arrivals.length && wait === 0; wait = arrivals[next]?.gap ?? 0) {
      const requestId = BigInt(next);
      if (replay.arrive({ requestId, ...arrivals[next]! }) === null) admitted.add(requestId);
      next += 1;
    }
    wait -= 1;
    if (replay.numActive === 0) continue;
    const iteration = replay.iterate();
    expect(iteration.chunks.length, 'an iteration with active requests runs something').toBeGreaterThan(0);
    iterations.push(iteration);
    expect(iterations.length).toBeLessThan(mostIterations);
  }
  expect(replay.kv.freeBlocks).toBe(options.numBlocks);
  const finished = iterations.flatMap((iteration) => iteration.finished);
  expect(new Set(finished)).toEqual(admitted);
  expect(finished.length).toBe(admitted.size);
  return iterations;
}

function expectWithinBudgets(iteration: ReplayIteration, options: ReplayOptions): void {
  const { chunks, scheduled } = iteration;
  const { maxBatchSize, maxNumTokens, chunking } = options.microBatch;
  expect(scheduled.length).toBeLessThanOrEqual(options.maxNumRequests);
  expect(chunks.length).toBeLessThanOrEqual(maxBatchSize);
  const tokens = chunks.map((chunk) => (chunk.phase === 'generation' ? 1 : chunk.contextTokens));
  expect(tokens.every((count) => count > 0)).toBe(true);
  expect(tokens.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(maxNumTokens);
  const firstGeneration = chunks.findIndex((chunk) => chunk.phase === 'generation');
  if (firstGeneration >= 0) {
    expect(chunks.slice(firstGeneration).every((chunk) => chunk.phase === 'generation')).toBe(true);
  }
  for (const { phase, contextTokens, lastChunk } of chunks) {
    if (phase === 'generation') continue;
    if (!chunking) expect(lastChunk).toBe(true);
    else if (!lastChunk) expect(contextTokens % chunking.unit).toBe(0);
    expect(contextTokens).toBeLessThanOrEqual(chunking?.maxContextLength ?? contextTokens);
  }
  expect(new Set(iteration.newBlocks).size).toBe(iteration.newBlocks.length);
}

function check(policy: ReplayOptions['policy'], priorities: boolean, property: (run: Run) => void): void {
  fc.assert(
    fc.property(histories(policy, priorities), (history) => {
      const iterations = run(history);
      for (const iteration of iterations) expectWithinBudgets(iteration, history.options);
      property({ history, iterations });
    }),
    { numRuns: 700 },
  );
}

interface Run {
  history: History;
  iterations: ReplayIteration[];
}

/** Requests that wait for their start may not be passed by one behind them in the list. */
function expectNoOvertaking({ active, scheduled }: ReplayIteration): void {
  const waiting = active.filter((request) => !hasStarted(request));
  const firstLeftOut = waiting.findIndex((request) => !scheduled.includes(request.requestId));
  if (firstLeftOut < 0) return;
  for (const behind of waiting.slice(firstLeftOut)) expect(scheduled).not.toContain(behind.requestId);
}

describe('random histories', () => {
  for (const priorities of [false, true]) {
    const name = priorities ? 'with priorities' : 'in order of arrival';

    it(`GUARANTEED_NO_EVICT ${name}: nothing is paused or overtaken, every request ends`, () => {
      check('GUARANTEED_NO_EVICT', priorities, ({ iterations }) => {
        for (const iteration of iterations) {
          expect(iteration.paused).toEqual([]);
          expectNoOvertaking(iteration);
          for (const request of iteration.active) {
            if (request.phase === 'generation') expect(iteration.scheduled).toContain(request.requestId);
          }
        }
      });
    });

    it(`MAX_UTILIZATION ${name}: the head of the list always stays, every request ends`, () => {
      let pauses = 0;
      check('MAX_UTILIZATION', priorities, ({ iterations }) => {
        for (const { active, scheduled, paused } of iterations) {
          pauses += paused.length;
          expect(scheduled[0]).toBe(active[0]!.requestId);
          for (const request of active) {
            if (!hasStarted(request)) continue;
            const places = [scheduled, paused].filter((ids) => ids.includes(request.requestId));
            expect(places, 'a started request is scheduled or paused').toHaveLength(1);
          }
        }
      });
      expect(pauses, 'the histories are tight enough to pause').toBeGreaterThan(100);
    });
  }

  it('STATIC_BATCH: nothing starts while anything generates, every request ends', () => {
    check('STATIC_BATCH', true, ({ iterations }) => {
      for (const { active, scheduled, paused } of iterations) {
        expect(paused).toEqual([]);
        const generating = active.filter((request) => request.phase === 'generation');
        if (generating.length > 0) expect(scheduled).toEqual(generating.map((request) => request.requestId));
      }
    });
  });
});
