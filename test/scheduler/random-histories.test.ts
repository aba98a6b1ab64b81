import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SimulatedArrival } from '../../engine/simulation/simulated-request.js';
import { Simulation, type SimulationOptions } from '../../engine/simulation/simulation.js';
import { scheduleCapacity } from '../../scheduler/capacity-scheduler.js';
import { scheduleMicroBatch } from '../../scheduler/micro-batch-scheduler.js';
import {
  hasStarted,
  type MicroBatchLimits,
  type SchedulableRequest,
  type ScheduledChunk,
} from '../../scheduler/types.js';
import { ids } from '../support/schedulable.js';

const TOKENS_PER_BLOCK = 8;

type Arrival = Omit<SimulatedArrival, 'requestId'> & { gap: number };
interface History {
  options: SimulationOptions;
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
function histories(policy: SimulationOptions['policy'], priorities: boolean): fc.Arbitrary<History> {
  const arrival = fc.record({
    gap: fc.integer({ min: 0, max: 2 }),
    promptLength: fc.oneof(fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 45 })),
    maxNewTokens: fc.integer({ min: 1, max: 30 }),
    endsAfter: fc.integer({ min: 5, max: 60 }),
    draftLength: fc.constantFrom(0, 0, 2, 9),
    priority: priorities ? fc.constantFrom(0.2, 0.5, 0.9) : fc.constant(0.5),
  });
  return fc
    .record({
      numBlocks: fc.integer({ min: 5, max: 12 }),
      maxInputLen: fc.integer({ min: 20, max: 40 }),
      maxNumRequests: fc.integer({ min: 1, max: 8 }),
      maxBatchSize: fc.integer({ min: 1, max: 8 }),
      maxNumTokens: fc.integer({ min: TOKENS_PER_BLOCK, max: 80 }),
      chunking,
      arrivals: fc.array(arrival, { minLength: 1, maxLength: 12 }),
    })
    .map(({ numBlocks, maxInputLen, maxNumRequests, maxBatchSize, maxNumTokens, chunking, arrivals }) => ({
      options: {
        policy,
        numBlocks,
        tokensPerBlock: TOKENS_PER_BLOCK,
        maxInputLen,
        maxNumRequests,
        microBatch: { maxBatchSize, maxNumTokens, ...(chunking ? { chunking } : {}) },
      },
      arrivals,
    }));
}

/** Cheaper than expect, which is asked millions of times here. */
function must(condition: boolean, sentence: string): void {
  if (!condition) throw new Error(`It does not hold that ${sentence}.`);
}

/** An iteration with what the schedulers saw, frozen. */
interface ObservedIteration {
  active: readonly Readonly<SchedulableRequest>[];
  /** By the capacity scheduler. */
  scheduled: bigint[];
  paused: bigint[];
  chunks: { request: Readonly<SchedulableRequest>; contextTokens: number; lastChunk: boolean }[];
  finished: bigint[];
  newBlocks: number[];
}

/**
 * Asks both schedulers twice about frozen copies before the simulation asks them: a plan that depends on anything
 * but its inputs, or changes them, is caught here.
 */
function observe(
  simulation: Simulation,
  { policy, maxNumRequests, microBatch }: SimulationOptions,
): ObservedIteration {
  const active = Object.freeze(simulation.active.map(frozenView));
  const kv = Object.freeze(simulation.kvCache.capacity());
  const plans = [0, 1].map(() => scheduleCapacity(policy, active, kv, maxNumRequests));
  const [first, second] = plans.map((plan) => [ids(plan.scheduled), ids(plan.paused)].join(' | '));
  must(first === second, 'the same inputs give the same plan');
  const batches = plans.map((plan) =>
    scheduleMicroBatch(Object.freeze(plan.scheduled), microBatch).map(sizeOf),
  );
  must(`${batches[0]}` === `${batches[1]}`, 'the same inputs give the same batch');
  const { steps, finished, newBlocks, paused } = simulation.iterate();
  const ran = steps.map((step) => `${step.requestId}:${step.contextAfter - step.contextBefore}`);
  must(`${ran}` === `${batches[0]}`, 'what runs is the scheduled batch');
  const scheduled = ids(plans[0]!.scheduled);
  must(`${ids(plans[0]!.paused)}` === `${paused}`, 'the planner pauses whom the scheduler names');
  const chunks = steps.map(({ requestId, contextBefore, contextAfter }) => {
    const request = active.find((candidate) => candidate.requestId === requestId)!;
    const lastChunk = contextAfter === request.promptLength;
    return { request, contextTokens: contextAfter - contextBefore, lastChunk };
  });
  return { active, scheduled, paused, chunks, finished: ids(finished), newBlocks };
}

function sizeOf({ request, contextTokens }: ScheduledChunk<SchedulableRequest>): string {
  return `${request.requestId}:${contextTokens}`;
}

function frozenView(request: SchedulableRequest): Readonly<SchedulableRequest> {
  const { requestId, phase, promptLength, generatedLength, maxNewTokens } = request;
  const { contextPosition, blocksHeld, beamWidth, draftLength } = request;
  const lengths = { promptLength, generatedLength, maxNewTokens, contextPosition };
  return Object.freeze({ requestId, phase, ...lengths, blocksHeld, beamWidth, draftLength });
}

/** Runs a history to its end; fails if an iteration in which something is active runs nothing, or if it never ends. */
function run({ options, arrivals }: History): ObservedIteration[] {
  const simulation = new Simulation(options);
  const iterations: ObservedIteration[] = [];
  const admitted = new Set<bigint>();
  let next = 0;
  let wait = arrivals[0]!.gap;
  while (next < arrivals.length || simulation.active.length > 0) {
    for (; next < arrivals.length && wait === 0; wait = arrivals[next]?.gap ?? 0) {
      const requestId = BigInt(next);
      if (simulation.arrive({ requestId, ...arrivals[next]! }) === null) admitted.add(requestId);
      next += 1;
    }
    wait -= 1;
    if (simulation.active.length === 0) continue;
    const iteration = observe(simulation, options);
    simulation.kvCache.checkIntegrity();
    must(iteration.chunks.length > 0, 'an iteration with active requests runs something');
    iterations.push(iteration);
    must(iterations.length < 4000, 'the history ends');
  }
  must(simulation.kvCache.freeBlocks === options.numBlocks, 'all blocks come back');
  const finished = iterations.flatMap((iteration) => iteration.finished);
  must(finished.length === admitted.size, 'no request ends twice');
  must(
    finished.every((requestId) => admitted.has(requestId)),
    'every admitted request ends',
  );
  return iterations;
}

function checkBudgets({ chunks, scheduled, newBlocks }: ObservedIteration, options: SimulationOptions): void {
  const { maxBatchSize, maxNumTokens, chunking } = options.microBatch;
  must(scheduled.length <= options.maxNumRequests, 'maxNumRequests holds');
  must(chunks.length <= maxBatchSize, 'maxBatchSize holds');
  must(new Set(newBlocks).size === newBlocks.length, 'a new block is named once');
  let tokens = 0;
  let generationSeen = false;
  for (const { request, contextTokens, lastChunk } of chunks) {
    tokens += request.phase === 'generation' ? 1 + request.draftLength : contextTokens;
    if (request.phase === 'generation') {
      generationSeen = true;
      continue;
    }
    must(!generationSeen, 'contexts come before generation');
    must(contextTokens > 0, 'a zero chunk is not scheduled');
    must(lastChunk || contextTokens % (chunking?.unit ?? Number.NaN) === 0, 'chunks are whole units');
    must(contextTokens <= (chunking?.maxContextLength ?? contextTokens), 'maxContextLength holds');
  }
  must(tokens <= maxNumTokens, 'maxNumTokens holds');
}

function check(policy: SimulationOptions['policy'], priorities: boolean, property: (run: Run) => void): void {
  fc.assert(
    fc.property(histories(policy, priorities), (history) => {
      const iterations = run(history);
      for (const iteration of iterations) checkBudgets(iteration, history.options);
      property({ history, iterations });
    }),
    { numRuns: 700 },
  );
}

interface Run {
  history: History;
  iterations: ObservedIteration[];
}

/** Requests that wait for their start may not be passed by one behind them in the list. */
function checkNoOvertaking({ active, scheduled }: ObservedIteration): void {
  const waiting = active.filter((request) => !hasStarted(request));
  const firstLeftOut = waiting.findIndex((request) => !scheduled.includes(request.requestId));
  if (firstLeftOut < 0) return;
  const passed = waiting.slice(firstLeftOut).some((request) => scheduled.includes(request.requestId));
  must(!passed, 'nobody overtakes');
}

describe('random histories', () => {
  for (const priorities of [false, true]) {
    const name = priorities ? 'with priorities' : 'in order of arrival';

    it(`GUARANTEED_NO_EVICT ${name}: nothing is paused or overtaken, every request ends`, () => {
      check('GUARANTEED_NO_EVICT', priorities, ({ iterations }) => {
        for (const iteration of iterations) {
          must(iteration.paused.length === 0, 'nothing is paused');
          checkNoOvertaking(iteration);
          for (const request of iteration.active) {
            if (request.phase !== 'generation') continue;
            must(iteration.scheduled.includes(request.requestId), 'a generating request goes on');
          }
        }
      });
    });

    it(`MAX_UTILIZATION ${name}: the head of the list always stays, every request ends`, () => {
      let pauses = 0;
      check('MAX_UTILIZATION', priorities, ({ iterations }) => {
        for (const { active, scheduled, paused } of iterations) {
          pauses += paused.length;
          must(scheduled[0] === active[0]!.requestId, 'the head of the list stays');
          for (const request of active) {
            if (!hasStarted(request)) continue;
            const { requestId } = request;
            must(
              scheduled.includes(requestId) !== paused.includes(requestId),
              'a started request is either scheduled or paused',
            );
          }
        }
      });
      expect(pauses, 'the histories are tight enough to pause').toBeGreaterThan(100);
    });
  }

  it('STATIC_BATCH: nothing starts while anything generates, every request ends', () => {
    check('STATIC_BATCH', true, ({ iterations }) => {
      for (const { active, scheduled, paused } of iterations) {
        must(paused.length === 0, 'nothing is paused');
        const generating = active.filter((request) => request.phase === 'generation');
        const onlyThose = scheduled.every((requestId, at) => requestId === generating[at]?.requestId);
        must(generating.length === 0 || onlyThose, 'nothing starts beside a running batch');
      }
    });
  });
});
