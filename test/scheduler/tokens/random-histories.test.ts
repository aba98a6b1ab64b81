import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SimulatedArrival, SimulatedRequest } from '../../../engine/simulation/simulated-request.js';
import {
  type SimulatedIteration,
  Simulation,
  type SimulationOptions,
} from '../../../engine/simulation/simulation.js';
import type { KvCacheManager } from '../../../kvcache/kv-cache-manager.js';
import { scheduleCapacity } from '../../../scheduler/tokens/capacity-scheduler.js';
import { scheduleMicroBatch } from '../../../scheduler/tokens/micro-batch-scheduler.js';
import {
  CHUNKING_POLICIES,
  hasStarted,
  type MicroBatchLimits,
  type SchedulableRequest,
  type ScheduledChunk,
} from '../../../scheduler/tokens/types.js';
import { draws } from '../../support/scale.js';
import { ids } from '../../support/schedulable.js';

const TOKENS_PER_BLOCK = 8;

type Arrival = Omit<SimulatedArrival, 'requestId'> & { gap: number };
interface Kind {
  priorities: boolean;
  reuse: boolean;
  /** Some requests have one of five adapters, which do not all fit at once. */
  adapters?: boolean;
}

interface History {
  options: SimulationOptions;
  arrivals: Arrival[];
}

const chunking: fc.Arbitrary<MicroBatchLimits['chunking']> = fc.option(
  fc.record(
    {
      policy: fc.constantFrom(...CHUNKING_POLICIES),
      unit: fc.constant(TOKENS_PER_BLOCK),
      maxContextLength: fc.integer({ min: TOKENS_PER_BLOCK, max: 40 }),
    },
    { requiredKeys: ['policy', 'unit'] },
  ),
  { nil: undefined },
);

/** Small pools and small budgets, so that nearly every history runs out of something. */
function histories(
  policy: SimulationOptions['policy'],
  { priorities, reuse, adapters = false }: Kind,
): fc.Arbitrary<History> {
  const arrival = fc.record({
    gap: fc.integer({ min: 0, max: 2 }),
    promptLength: fc.oneof(fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 45 })),
    maxNewTokens: fc.integer({ min: 1, max: 30 }),
    endsAfter: fc.integer({ min: 5, max: 60 }),
    draftLength: fc.constantFrom(0, 0, 2, 9),
    path: fc.array(fc.constantFrom(0, 0, 0, 1, 2), { minLength: 6, maxLength: 6 }),
    ...(adapters ? { task: fc.option(fc.nat(4)) } : {}),
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
      maxAdapters: fc.integer({ min: 1, max: 3 }),
      maxPages: fc.integer({ min: 3, max: 5 }),
      arrivals: fc.array(arrival, { minLength: 1, maxLength: 12 }),
    })
    .map(
      ({
        numBlocks,
        maxInputLen,
        maxNumRequests,
        maxBatchSize,
        maxNumTokens,
        chunking,
        arrivals,
        ...room
      }) => ({
        options: {
          ...(adapters ? { adapters: room } : {}),
          policy,
          numBlocks,
          tokensPerBlock: TOKENS_PER_BLOCK,
          maxInputLen,
          maxNumRequests,
          microBatch: { maxBatchSize, maxNumTokens, ...(chunking ? { chunking } : {}) },
          enableBlockReuse: reuse,
        },
        arrivals: arrivals.map(({ path, task = null, ...arrival }) => ({
          ...arrival,
          ...(task === null ? {} : { adapter: { taskId: BigInt(task), pages: 1 + (task % 3) } }),
          ...(reuse ? { tokens: promptOf(path, arrival.promptLength) } : {}),
        })),
      }),
    );
}

/** Prompts of the same few blocks, so that many begin alike. */
function promptOf(path: readonly number[], length: number): Int32Array {
  return Int32Array.from(
    { length },
    (_, place) => 10 * path[Math.floor(place / TOKENS_PER_BLOCK)]! + (place % TOKENS_PER_BLOCK),
  );
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
  { policy, maxNumRequests, microBatch, enableBlockReuse, adapters }: SimulationOptions,
): ObservedIteration {
  const active = Object.freeze(simulation.active.map((request) => frozenView(request, simulation.kvCache)));
  const kv = Object.freeze(simulation.kvCache.capacity());
  const plans = [0, 1].map(() => scheduleCapacity(policy, active, kv, maxNumRequests, { adapters }));
  const [first, second] = plans.map((plan) => [ids(plan.scheduled), ids(plan.paused)].join(' | '));
  must(first === second, 'the same inputs give the same plan');
  const batches = plans.map((plan) =>
    scheduleMicroBatch(Object.freeze(plan.scheduled), microBatch).map(sizeOf),
  );
  must(`${batches[0]}` === `${batches[1]}`, 'the same inputs give the same batch');
  const { steps, finished, newBlocks, paused } = simulation.iterate();
  const ran = steps.map((step) => `${step.requestId}:${step.contextAfter - step.contextBefore}`);
  // Tokens found in the cache shorten a first chunk.
  const named = (batch: readonly string[]) =>
    enableBlockReuse ? batch.map((part) => part.split(':')[0]) : batch;
  must(`${named(ran)}` === `${named(batches[0]!)}`, 'what runs is the scheduled batch');
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

function frozenView(request: SimulatedRequest, kvCache: KvCacheManager): Readonly<SchedulableRequest> {
  const { requestId, phase, promptLength, generatedLength, maxNewTokens } = request;
  const { contextPosition, blocksHeld, beamWidth, draftLength, priority, passedOver, hasAged } = request;
  const { adapter } = request;
  const lengths = { promptLength, generatedLength, maxNewTokens, contextPosition };
  const { shared } = request;
  const mayShare = phase === 'context' && shared !== null;
  const firstMissingBlock = mayShare ? kvCache.firstMissingBlock(shared, promptLength) : null;
  return Object.freeze({
    requestId,
    phase,
    ...lengths,
    blocksHeld,
    beamWidth,
    draftLength,
    firstMissingBlock,
    priority,
    passedOver,
    adapter,
    hasAged,
  });
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

function check(policy: SimulationOptions['policy'], kind: Kind, property: (run: Run) => void): void {
  fc.assert(
    fc.property(histories(policy, kind), (history) => {
      const iterations = run(history);
      for (const iteration of iterations) checkBudgets(iteration, history.options);
      property({ history, iterations });
    }),
    // Few histories have a request that waits for another's blocks: with twice as many the count below cannot fail by chance.
    { numRuns: draws(kind.reuse ? 120 : 60) },
  );
}

interface Run {
  history: History;
  iterations: ObservedIteration[];
}

/** True if the requests' adapters fit together. */
function fitTogether(requests: readonly SchedulableRequest[], { adapters }: SimulationOptions): boolean {
  if (adapters === undefined) return true;
  const pages = new Map<bigint, number>();
  for (const { adapter } of requests) if (adapter) pages.set(adapter.taskId, adapter.pages);
  const sum = [...pages.values()].reduce((all, one) => all + one, 0);
  return pages.size <= adapters.maxAdapters && sum <= adapters.maxPages;
}

/**
 * Requests that wait for their start may not be passed by a later one in the list, unless another context
 * writes the block that they miss first, or their adapter does not fit next to those that run or have
 * started. Returns how many were passed.
 */
function checkNoOvertaking({ active, scheduled }: ObservedIteration, options: SimulationOptions): number {
  const runs = ({ requestId }: SchedulableRequest) => scheduled.includes(requestId);
  const writers = active.filter(
    (request) => request.phase === 'context' && (hasStarted(request) || runs(request)),
  );
  const isDelayed = ({ firstMissingBlock }: SchedulableRequest) =>
    firstMissingBlock !== null && writers.some((writer) => writer.firstMissingBlock === firstMissingBlock);
  const waiting = active.filter((request) => !hasStarted(request));
  const leftOut = waiting.filter((request) => !runs(request));
  const last = waiting.findLastIndex(runs);
  const passed = leftOut.filter((request) => waiting.indexOf(request) < last);
  const lacksAdapter = (request: SchedulableRequest) =>
    !fitTogether([...active.filter((other) => hasStarted(other) || runs(other)), request], options);
  must(
    passed.every((request) => isDelayed(request) || lacksAdapter(request)),
    'nobody overtakes',
  );
  return passed.length;
}

const KINDS: (Kind & { name: string })[] = [
  { name: 'in order of arrival', priorities: false, reuse: false },
  { name: 'with priorities', priorities: true, reuse: false },
  { name: 'with block reuse', priorities: false, reuse: true },
  { name: 'with priorities and block reuse', priorities: true, reuse: true },
  { name: 'with adapters', priorities: false, reuse: false, adapters: true },
  { name: 'with priorities, adapters and block reuse', priorities: true, reuse: true, adapters: true },
];

describe('random histories', () => {
  for (const { name, ...kind } of KINDS) {
    it(`GUARANTEED_NO_EVICT ${name}: nothing is paused or overtaken, every request ends`, () => {
      let passed = 0;
      check('GUARANTEED_NO_EVICT', kind, ({ history: { options }, iterations }) => {
        for (const iteration of iterations) {
          const running = iteration.active.filter(
            (request) => hasStarted(request) || iteration.scheduled.includes(request.requestId),
          );
          must(fitTogether(running, options), 'whatever has started has its adapter');
          must(iteration.paused.length === 0, 'nothing is paused');
          passed += checkNoOvertaking(iteration, options);
          for (const request of iteration.active) {
            if (request.phase !== 'generation') continue;
            must(iteration.scheduled.includes(request.requestId), 'a generating request goes on');
          }
        }
      });
      if (kind.adapters) expect(passed, 'some lack their adapter').toBeGreaterThan(8);
      else if (kind.reuse) expect(passed, 'some wait for blocks that others write').toBeGreaterThan(1);
      else expect(passed).toBe(0);
    });

    it(`MAX_UTILIZATION ${name}: the head of the list always stays, every request ends`, () => {
      let pauses = 0;
      let withoutAdapter = 0;
      check('MAX_UTILIZATION', kind, ({ history: { options }, iterations }) => {
        for (const { active, scheduled, paused } of iterations) {
          const inFront: SchedulableRequest[] = [];
          pauses += paused.length;
          const head = active[0]!;
          const isDelayed = kind.reuse && !hasStarted(head);
          must(isDelayed || scheduled[0] === head.requestId, 'the head of the list stays');
          for (const request of active) {
            const { requestId } = request;
            const runs = scheduled.includes(requestId);
            const lacksAdapter = !fitTogether([...inFront, request], options);
            must(!runs || !lacksAdapter, 'whatever runs has its adapter');
            if (runs) inFront.push(request);
            if (lacksAdapter) withoutAdapter += 1;
            if (!hasStarted(request) || (lacksAdapter && !paused.includes(requestId))) continue;
            must(runs !== paused.includes(requestId), 'a started request is either scheduled or paused');
          }
        }
      });
      expect(pauses, 'the histories are tight enough to pause').toBeGreaterThan(8);
      if (kind.adapters) expect(withoutAdapter, 'some lack their adapter').toBeGreaterThan(80);
    });
  }

  it.each([false, true])(
    'STATIC_BATCH: nothing starts while anything generates, every request ends (adapters: %s)',
    (adapters) => {
      check(
        'STATIC_BATCH',
        { priorities: true, reuse: false, adapters },
        ({ history: { options }, iterations }) => {
          for (const { active, scheduled, paused } of iterations) {
            const running = active.filter(({ requestId }) => scheduled.includes(requestId));
            must(fitTogether(running, options), 'whatever runs has its adapter');
            must(paused.length === 0, 'nothing is paused');
            const generating = active.filter((request) => request.phase === 'generation');
            const onlyThose = scheduled.every((requestId, at) => requestId === generating[at]?.requestId);
            must(generating.length === 0 || onlyThose, 'nothing starts beside a running batch');
          }
        },
      );
    },
  );
});

describe('random histories with the options of the schedulers', () => {
  function checkWith(
    more: Partial<SimulationOptions>,
    kind: Kind,
    property: (iteration: SimulatedIteration, arrivals: readonly Arrival[]) => void,
  ): void {
    const everything = fc.property(histories('MAX_UTILIZATION', kind), ({ options, arrivals }) => {
      const simulation = new Simulation({ ...options, ...more });
      for (const [index, arrival] of arrivals.entries()) {
        simulation.arrive({ requestId: BigInt(index), ...arrival });
        for (let gap = 0; gap < arrival.gap; gap += 1) property(simulation.iterate(), arrivals);
      }
      for (let iterations = 0; simulation.active.length > 0; iterations += 1) {
        must(iterations < 4000, 'the history ends');
        property(simulation.iterate(), arrivals);
        simulation.kvCache.checkIntegrity();
      }
      must(simulation.kvCache.freeBlocks === options.numBlocks, 'all blocks come back');
    });
    fc.assert(everything, { numRuns: draws(50) });
  }

  it.each([false, true])(
    'startHorizon as long as the answers: nothing is paused (block reuse: %s)',
    (reuse) => {
      // More requests than may run at once are paused for that, not for blocks.
      const more = { startHorizon: 30, maxNumRequests: 12 };
      checkWith(more, { priorities: false, reuse }, ({ paused }) => {
        must(paused.length === 0, 'nothing is paused');
      });
    },
  );

  it('maxWaitIterations: requests of equal priority stay in order of arrival', () => {
    let passed = 0;
    checkWith({ maxWaitIterations: 5 }, { priorities: true, reuse: false }, ({ active }, arrivals) => {
      const priority = (requestId: bigint) => arrivals[Number(requestId)]!.priority!;
      for (const [place, requestId] of active.entries()) {
        for (const behind of active.slice(place + 1)) {
          if (priority(behind) <= priority(requestId)) {
            const isInOrder = requestId < behind || priority(behind) < priority(requestId);
            must(isInOrder, 'equals stay in order of arrival');
          } else {
            must(requestId < behind, 'only earlier arrivals pass higher priorities');
            passed += 1;
          }
        }
      }
    });
    expect(passed, 'some wait too long').toBeGreaterThan(10);
  });
});
