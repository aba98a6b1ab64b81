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
    gap: fc.integer({ min: 0, max: 2 }),
    promptLength: fc.oneof(fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 45 })),
    maxNewTokens: fc.integer({ min: 1, max: 30 }),
    endsAfter: fc.integer({ min: 5, max: 60 }),
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
        maxSeqLen: 40,
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

/** Runs a history to its end; fails if an iteration in which something is active runs nothing, or if it never ends. */
function run({ options, arrivals }: History): ReplayIteration[] {
  const replay = new Replay(options);
  const iterations: ReplayIteration[] = [];
  const admitted = new Set<bigint>();
  let next = 0;
  let wait = arrivals[0]!.gap;
  while (next < arrivals.length || replay.numActive > 0) {
    for (; next < arrivals.length && wait === 0; wait = arrivals[next]?.gap ?? 0) {
      const requestId = BigInt(next);
      if (replay.arrive({ requestId, ...arrivals[next]! }) === null) admitted.add(requestId);
      next += 1;
    }
    wait -= 1;
    if (replay.numActive === 0) continue;
    const iteration = replay.iterate();
    must(iteration.chunks.length > 0, 'an iteration with active requests runs something');
    iterations.push(iteration);
    must(iterations.length < 4000, 'the history ends');
  }
  must(replay.kv.freeBlocks === options.numBlocks, 'all blocks come back');
  const finished = iterations.flatMap((iteration) => iteration.finished);
  must(finished.length === admitted.size, 'no request ends twice');
  must(
    finished.every((requestId) => admitted.has(requestId)),
    'every admitted request ends',
  );
  return iterations;
}

function checkBudgets({ chunks, scheduled, newBlocks }: ReplayIteration, options: ReplayOptions): void {
  const { maxBatchSize, maxNumTokens, chunking } = options.microBatch;
  must(scheduled.length <= options.maxNumRequests, 'maxNumRequests holds');
  must(chunks.length <= maxBatchSize, 'maxBatchSize holds');
  must(new Set(newBlocks).size === newBlocks.length, 'a new block is named once');
  let tokens = 0;
  let generationSeen = false;
  for (const { phase, contextTokens, lastChunk } of chunks) {
    tokens += phase === 'generation' ? 1 : contextTokens;
    if (phase === 'generation') {
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

function check(policy: ReplayOptions['policy'], priorities: boolean, property: (run: Run) => void): void {
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
  iterations: ReplayIteration[];
}

/** Requests that wait for their start may not be passed by one behind them in the list. */
function checkNoOvertaking({ active, scheduled }: ReplayIteration): void {
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
